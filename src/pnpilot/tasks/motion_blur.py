"""Motion blur: kernels drawn at random."""

from __future__ import annotations

import re

import torch
from deepinv.physics import BlurFFT, GaussianNoise
from deepinv.physics.generator import MotionBlurGenerator

from ..errors import require
from .base import TASKS, Setting, Task


@TASKS.register("motion-blur")
class MotionBlur(Task):
    """Motion blur: every image has a random kernel of its own, circular boundary (deepinv's BlurFFT)."""

    def __init__(self) -> None:
        self.settings = [self.setting(25, 2.55), self.setting(25, 7.65)]

    @staticmethod
    def setting(side: int = 25, sigma: float = 7.65) -> Setting:
        """Side of the kernel in pixels, which is odd; noise level on the 0-255 scale."""
        require(side >= 3 and side % 2 == 1, f"the side of the kernel must be odd and at least 3, got {side}")
        require(sigma >= 0, f"the noise level must be zero or more, got {sigma}")
        return Setting(f"side={side} sigma={sigma:g}", {"side": side, "sigma": sigma})

    def named(self, label: str) -> Setting:
        """Any setting such as 'side=15 sigma=5'."""
        found = re.fullmatch(r"side=(\d+) sigma=(\d+\.?\d*)", label)
        return self.setting(int(found[1]), float(found[2])) if found else super().named(label)

    def draw(self, count: int, generator: torch.Generator) -> list[Setting]:
        """Kernels of one size for a batch, so that they can be joined; a noise level of its own for every image."""
        side = 2 * int(torch.randint(4, 14, (), generator=generator)) + 1
        return [self.setting(side, 1 + 14 * share) for share in torch.rand(count, generator=generator).tolist()]

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> BlurFFT:
        """deepinv's random trajectories, smooth curves that fill about half of the kernel's side."""
        side = min(setting["side"], *((length - 1) // 2 * 2 + 1 for length in shape[1:]))
        kernel = MotionBlurGenerator((side, side), rng=generator).step()["filter"]
        noise = GaussianNoise(setting["sigma"] / 255, rng=generator)
        return BlurFFT(shape, filter=kernel, noise_model=noise)
