"""The protocol of DPIR's deblurring, to the last random number."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from deepinv.physics import GaussianNoise
from torch import Tensor

from ...errors import BadInput
from ...tasks import Setting
from ...tasks.deblur import Deblur
from .base import Operator

FILE = Path("kernels", "levin09.npz")
"""Kernels k1 to k8 by Levin et al. (CVPR 2009), below the data folder."""


class SeededNoise(GaussianNoise):
    """What a camera of eight bits sees, cut to whole numbers, and numpy's noise with seed 0, the same for every image.

    The protocol blurs arrays of bytes, which cuts off what is behind the comma. Noise is drawn with colours last.
    """

    def forward(self, x: Tensor, **_: Any) -> Tensor:
        """Noisy images (B, C, H, W)."""
        colours, height, width = x.shape[1:]
        noise = np.random.RandomState(0).normal(0, float(self.sigma), (height, width, colours))
        # A blur by FFT may fall short of a whole number.
        return (255 * x + 1e-3).floor() / 255 + torch.from_numpy(noise).to(x).movedim(-1, 0)


class Levin(Operator):
    """A Levin kernel with circular boundary."""

    group = "deblurring"
    task = "deblur"
    kernel: ClassVar[str]
    level: ClassVar[float]
    """Of the noise, on the 0-255 scale."""

    def setting(self, data: Path) -> Setting:
        """The kernel is in a file."""
        path = data / FILE
        try:
            with np.load(path, allow_pickle=False) as kernels:
                kernel = torch.from_numpy(kernels[self.kernel]).float()
        except (OSError, ValueError, KeyError) as error:
            raise BadInput(f"{self.name} needs the kernel {self.kernel} in {path}: {error}") from error
        return Deblur.own(kernel, f"levin {self.kernel}", SeededNoise(self.level / 255))


class PublishedLevin(Levin):
    """The three grey images that DPIR was published with."""

    only = ("01", "02", "05")
    size = (256, 256)


def scores(cameraman: float, house: float, monarch: float) -> dict[str, dict[str, float]]:
    """What DPIR reached with its own denoiser, which is larger than ours."""
    return {"dpir-published": {"01": cameraman, "02": house, "05": monarch}}
