"""Deblurring: a known blur kernel."""

from __future__ import annotations

import torch
from deepinv.physics import BlurFFT, GaussianNoise
from deepinv.physics.functional import gaussian_blur
from torch import Tensor

from ..errors import require
from .base import TASKS, Setting, Task


@TASKS.register("deblur")
class Deblur(Task):
    """Deblurring: a known Gaussian kernel with circular boundary (deepinv's BlurFFT)."""

    def __init__(self) -> None:
        self.settings = [self.setting(1.6, 2.55), self.setting(3.0, 7.65)]

    @staticmethod
    def setting(width: float = 1.6, sigma: float = 2.55) -> Setting:
        """Width of the kernel in pixels; noise level on the 0-255 scale."""
        require(width > 0, f"the kernel must have a positive width, got {width}")
        require(sigma >= 0, f"the noise level must be zero or more, got {sigma}")
        return Setting(f"width={width:g} sigma={sigma:g}", {"width": width, "sigma": sigma})

    @staticmethod
    def own(kernel: Tensor, label: str, noise: GaussianNoise) -> Setting:
        """Another kernel (h, w) with odd sides, called so in tables, and a noise model as it is."""
        require(kernel.ndim == 2, f"the kernel must be (height, width), got shape {tuple(kernel.shape)}")
        return Setting(f"{label} sigma={255 * float(noise.sigma):g}", {"kernel": kernel, "noise": noise})

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> BlurFFT:
        """The kernel is the same for all images."""
        if "kernel" in setting.values:
            return BlurFFT(shape, filter=setting["kernel"][None, None], noise_model=setting["noise"])
        kernel = gaussian_blur(sigma=(setting["width"], setting["width"]))
        noise = GaussianNoise(setting["sigma"] / 255, rng=generator)
        return BlurFFT(shape, filter=kernel, noise_model=noise)
