"""Orthonormal wavelet transforms by PyWavelets."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor


class Wavelet:
    """A periodic transform for images of one size, with as many of the wanted levels as that size allows."""

    def __init__(self, name: str, levels: int, height: int, width: int) -> None:
        import pywt

        levels = min(levels, pywt.dwt_max_level(min(height, width), name))
        while levels and (height % 2**levels or width % 2**levels):
            levels -= 1
        self.options = {"wavelet": name, "mode": "periodization", "axes": (-2, -1)}
        self.levels = levels

    def shrunk(self, image: Tensor, threshold: float) -> Tensor:
        """The image after soft thresholding of all wavelet coefficients except the coarsest."""
        import pywt

        if not (self.levels and threshold):
            return image  # a size that cannot be halved, or nothing to do
        coarse, *details = pywt.wavedec2(image.cpu().numpy(), level=self.levels, **self.options)
        soft = partial(pywt.threshold, value=threshold, mode="soft")
        shrunk = pywt.waverec2([coarse, *(tuple(map(soft, bands)) for bands in details)], **self.options)
        return torch.from_numpy(shrunk).to(image)
