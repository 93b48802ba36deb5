"""Denoising."""

from __future__ import annotations

import re

import torch
from deepinv.physics import Denoising, GaussianNoise

from ..errors import require
from .base import TASKS, Setting, Task


@TASKS.register("denoising")
class DenoisingTask(Task):
    """Denoising: white Gaussian noise on the image itself (deepinv's Denoising)."""

    def __init__(self) -> None:
        self.settings = [self.setting(25), self.setting(50)]

    @staticmethod
    def setting(sigma: float = 25) -> Setting:
        """Noise level on the 0-255 scale."""
        require(sigma >= 0, f"the noise level must be zero or more, got {sigma}")
        return Setting(f"sigma={sigma:g}", {"sigma": sigma})

    def named(self, label: str) -> Setting:
        """Any setting such as 'sigma=15'."""
        found = re.fullmatch(r"sigma=(\d+\.?\d*)", label)
        return self.setting(float(found[1])) if found else super().named(label)

    def draw(self, count: int, generator: torch.Generator) -> list[Setting]:
        """A noise level of its own for every image."""
        return [self.setting(2.55 + 52.45 * share) for share in torch.rand(count, generator=generator).tolist()]

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> Denoising:  # noqa: ARG002
        """The identity."""
        return Denoising(GaussianNoise(setting["sigma"] / 255, rng=generator))
