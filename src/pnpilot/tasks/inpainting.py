"""Inpainting: missing pixels."""

from __future__ import annotations

import torch
from deepinv.physics import GaussianNoise, Inpainting

from ..errors import require
from .base import TASKS, Setting, Task


@TASKS.register("inpainting")
class InpaintingTask(Task):
    """Inpainting: pixels missing at random, noise on the others (deepinv's Inpainting)."""

    def __init__(self) -> None:
        self.settings = [self.setting(0.5, 5), self.setting(0.2, 5)]

    @staticmethod
    def setting(kept: float = 0.5, sigma: float = 5) -> Setting:
        """Share of pixels kept; noise level on the 0-255 scale."""
        require(0 < kept <= 1, f"the share of pixels kept must be over 0 and at most 1, got {kept}")
        require(sigma >= 0, f"the noise level must be zero or more, got {sigma}")
        return Setting(f"kept={kept:g} sigma={sigma:g}", {"kept": kept, "sigma": sigma})

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> Inpainting:
        """A Bernoulli mask, the same for all channels."""
        _, height, width = shape
        mask = (torch.rand(1, 1, height, width, generator=generator) < setting["kept"]).float()
        noise = GaussianNoise(setting["sigma"] / 255, rng=generator)
        return Inpainting(shape, mask=mask.expand(1, *shape).clone(), noise_model=noise)
