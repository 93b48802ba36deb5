"""Deblurring with few photons."""

from __future__ import annotations

import re

import torch
from deepinv.physics import BlurFFT, PoissonNoise
from deepinv.physics.functional import gaussian_blur

from ..errors import require
from .base import TASKS, Setting, Task


@TASKS.register("poisson-deblurring")
class PoissonDeblurring(Task):
    """Deblurring of counted photons: a known Gaussian kernel with circular boundary, Poisson noise."""

    def __init__(self) -> None:
        self.settings = [self.setting(1.6, peak) for peak in (100, 30, 10)]

    @staticmethod
    def setting(width: float = 1.6, peak: float = 30) -> Setting:
        """Width of the kernel in pixels; the mean number of photons where the image is one."""
        require(width > 0, f"the kernel must have a positive width, got {width}")
        require(peak > 0, f"the peak must be a positive number of photons, got {peak}")
        return Setting(f"width={width:g} peak={peak:g}", {"width": width, "peak": peak})

    def named(self, label: str) -> Setting:
        """Any setting such as 'width=2 peak=50'."""
        found = re.fullmatch(r"width=(\d+\.?\d*) peak=(\d+\.?\d*)", label)
        return self.setting(float(found[1]), float(found[2])) if found else super().named(label)

    def draw(self, count: int, generator: torch.Generator) -> list[Setting]:
        """5 to 500 photons, for every image its own number, and one kernel for all images of a batch."""
        width, *shares = torch.rand(count + 1, generator=generator).tolist()
        return [self.setting(0.8 + 2.2 * width, 5 * 100**share) for share in shares]

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> BlurFFT:
        """Data are photons over the peak."""
        kernel = gaussian_blur(sigma=(setting["width"], setting["width"]))
        noise = PoissonNoise(1 / setting["peak"], clip_positive=True, rng=generator)
        return BlurFFT(shape, filter=kernel, noise_model=noise)
