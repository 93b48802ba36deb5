"""Coded Fourier sampling: a phase mask before the transform, as in coded apertures and compressed sensing."""

from __future__ import annotations

import math
import re

import torch
from deepinv.physics import GaussianNoise

from ..errors import require
from ..physics import CodedFourier
from .base import TASKS, Setting, Task


@TASKS.register("coded-fourier")
class CodedFourierTask(Task):
    """Coded Fourier: y = M(F(D·x) + noise), with a random phase mask D, and points M of the plane at random."""

    channels = (1,)

    def __init__(self) -> None:
        self.settings = [self.setting(0.4, 5)]

    @staticmethod
    def setting(kept: float = 0.4, sigma: float = 5) -> Setting:
        """Share of the points that are kept; noise level on the 0-255 scale, per real and imaginary part."""
        require(0 < kept <= 1, f"the share that is kept must be over 0 and at most 1, got {kept}")
        require(sigma >= 0, f"the noise level must be zero or more, got {sigma}")
        return Setting(f"kept={kept:g} sigma={sigma:g}", {"kept": kept, "sigma": sigma})

    def named(self, label: str) -> Setting:
        """Any setting such as 'kept=0.3 sigma=10'."""
        found = re.fullmatch(r"kept=(\d*\.?\d+) sigma=(\d+\.?\d*)", label)
        return self.setting(float(found[1]), float(found[2])) if found else super().named(label)

    def draw(self, count: int, generator: torch.Generator) -> list[Setting]:
        """More and less sampling and noise."""
        shares = torch.rand(count, 2, generator=generator).tolist()
        return [self.setting(0.15 + 0.55 * kept, 1 + 19 * noise) for kept, noise in shares]

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> CodedFourier:
        """Code and points are drawn anew for every image."""
        size = (1, 1, *shape[1:])
        turns = torch.rand(size, generator=generator)
        mask = (torch.rand(size, generator=generator) < setting["kept"]).float()
        code = torch.polar(torch.ones_like(turns), 2 * math.pi * turns)
        return CodedFourier(code, mask, noise_model=GaussianNoise(setting["sigma"] / 255, rng=generator))
