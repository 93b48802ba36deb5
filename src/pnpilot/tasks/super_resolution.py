"""Super-resolution: blur and subsampling."""

from __future__ import annotations

import torch
from deepinv.physics import Downsampling, GaussianNoise

from ..errors import require
from .base import TASKS, Setting, Task


@TASKS.register("super-resolution")
class SuperResolution(Task):
    """Super-resolution: bicubic blur, then every second or fourth pixel (deepinv's Downsampling)."""

    def __init__(self) -> None:
        self.settings = [self.setting(2, 2.55), self.setting(4, 2.55)]

    @staticmethod
    def setting(factor: int = 2, sigma: float = 2.55) -> Setting:
        """Subsampling per axis; noise level on the 0-255 scale."""
        require(factor >= 1, f"the factor must be at least 1, got {factor}")
        require(sigma >= 0, f"the noise level must be zero or more, got {sigma}")
        return Setting(f"factor={factor} sigma={sigma:g}", {"factor": factor, "sigma": sigma})

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> Downsampling:
        """Circular boundary, for which the data step has a closed form."""
        factor, (_, height, width) = setting["factor"], shape
        divisible = height % factor == 0 and width % factor == 0
        require(divisible, f"super-resolution by {factor} needs sides divisible by it, got {height}×{width}")
        noise = GaussianNoise(setting["sigma"] / 255, rng=generator)
        return Downsampling(shape, filter="bicubic", factor=factor, padding="circular", noise_model=noise)
