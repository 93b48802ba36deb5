"""Coded-diffraction phase retrieval: amplitudes of Fourier transforms behind random phase masks."""

from __future__ import annotations

import math
import re

import torch

from ..errors import require
from ..physics import CodedDiffraction, ShotNoise
from .base import TASKS, Setting, Task


@TASKS.register("phase")
class PhaseRetrieval(Task):
    """Coded-diffraction phase retrieval: amplitudes behind four random phase masks, with shot noise."""

    channels = (1,)

    def __init__(self) -> None:
        self.settings = [self.setting(alpha) for alpha in (9, 27, 81)]

    @staticmethod
    def setting(alpha: float = 27, masks: int = 4) -> Setting:
        """Shot noise α for intensities on the 0-255 scale; masks are drawn anew for every image."""
        require(alpha >= 0, f"the noise level alpha must be zero or more, got {alpha}")
        require(masks >= 1, f"at least one mask is needed, got {masks}")
        return Setting(
            f"alpha={alpha:g}" if masks == 4 else f"{masks} masks alpha={alpha:g}", {"alpha": alpha, "masks": masks}
        )

    def named(self, label: str) -> Setting:
        """Any setting such as 'alpha=40' or '6 masks alpha=27'."""
        found = re.fullmatch(r"(?:(\d+) masks )?alpha=(\d+\.?\d*)", label)
        require(found is not None, f"unknown setting {label!r}: write it as 'alpha=40', or '6 masks alpha=27'")
        assert found is not None
        return self.setting(float(found[2]), int(found[1] or 4))

    def draw(self, count: int, generator: torch.Generator) -> list[Setting]:
        """Noise wider than in the benchmark, and three to eight masks, the same number for all images of a batch."""
        masks = int(torch.randint(3, 9, (), generator=generator))
        return [self.setting(5 * 24**share, masks) for share in torch.rand(count, generator=generator).tolist()]

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> CodedDiffraction:
        """Masks exp(2πiU), U uniform."""
        _, height, width = shape
        turns = torch.rand(1, setting["masks"], height, width, generator=generator)
        masks = torch.polar(torch.ones_like(turns), 2 * math.pi * turns)
        return CodedDiffraction(masks, ShotNoise(setting["alpha"], rng=generator))
