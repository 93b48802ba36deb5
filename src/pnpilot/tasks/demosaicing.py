"""Demosaicing: one colour per pixel."""

from __future__ import annotations

import re

import torch
from deepinv.physics import Demosaicing, GaussianNoise

from ..errors import require
from .base import TASKS, Setting, Task


@TASKS.register("demosaicing")
class DemosaicingTask(Task):
    """Demosaicing: a Bayer pattern shows one colour per pixel (deepinv's Demosaicing)."""

    channels = (3,)

    def __init__(self) -> None:
        self.settings = [self.setting(5), self.setting(0)]

    @staticmethod
    def setting(sigma: float = 0) -> Setting:
        """Noise level on the 0-255 scale."""
        require(sigma >= 0, f"the noise level must be zero or more, got {sigma}")
        return Setting(f"bayer sigma={sigma:g}", {"sigma": sigma})

    def named(self, label: str) -> Setting:
        """Any setting such as 'bayer sigma=10'."""
        found = re.fullmatch(r"bayer sigma=(\d+\.?\d*)", label)
        return self.setting(float(found[1])) if found else super().named(label)

    def draw(self, count: int, generator: torch.Generator) -> list[Setting]:
        """A noise level of its own for every image."""
        return [self.setting(15 * share) for share in torch.rand(count, generator=generator).tolist()]

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> Demosaicing:
        """Green where row and column differ in parity, red where both are odd, blue where both are even."""
        return Demosaicing(shape, noise_model=GaussianNoise(setting["sigma"] / 255, rng=generator))
