"""Deblurring: a known blur kernel."""

from __future__ import annotations

import torch
from deepinv.physics import BlurFFT, GaussianNoise
from deepinv.physics.functional import gaussian_blur

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

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> BlurFFT:
        """The kernel is the same for all images."""
        kernel = gaussian_blur(sigma=(setting["width"], setting["width"]))
        noise = GaussianNoise(setting["sigma"] / 255, rng=generator)
        return BlurFFT(shape, filter=kernel, noise_model=noise)
