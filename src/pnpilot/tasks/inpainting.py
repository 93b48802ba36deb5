"""Inpainting: missing pixels, rows or boxes."""

from __future__ import annotations

import re

import torch
from deepinv.physics import GaussianNoise, Inpainting
from torch import Tensor

from ..errors import require
from .base import TASKS, Setting, Task

KINDS = ("pixels", "rows", "boxes")
SIDE = 8
"""Boxes have this many pixels a side."""


@TASKS.register("inpainting")
class InpaintingTask(Task):
    """Inpainting: pixels, whole rows or boxes missing at random, noise on the rest (deepinv's Inpainting)."""

    def __init__(self) -> None:
        own = ((0.5, 5.0, "pixels"), (0.2, 5.0, "pixels"), (0.5, 5.0, "rows"), (0.9, 5.0, "boxes"))
        self.settings = [self.setting(*values) for values in own]

    @staticmethod
    def setting(kept: float = 0.5, sigma: float = 5, kind: str = "pixels") -> Setting:
        """Share of the image that is kept; noise level on the 0-255 scale; what is missing."""
        require(0 < kept <= 1, f"the share that is kept must be over 0 and at most 1, got {kept}")
        require(sigma >= 0, f"the noise level must be zero or more, got {sigma}")
        require(kind in KINDS, f"what is missing must be one of {', '.join(KINDS)}, got {kind!r}")
        prefix = "" if kind == "pixels" else f"{kind} "
        return Setting(f"{prefix}kept={kept:g} sigma={sigma:g}", {"kept": kept, "sigma": sigma, "kind": kind})

    def named(self, label: str) -> Setting:
        """Any setting such as 'kept=0.3 sigma=10' or 'rows kept=0.5 sigma=5'."""
        found = re.fullmatch(r"(?:(\w+) )?kept=(\d*\.?\d+) sigma=(\d+\.?\d*)", label)
        return self.setting(float(found[2]), float(found[3]), found[1] or "pixels") if found else super().named(label)

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> Inpainting:
        """A random mask, the same for all channels."""
        _, height, width = shape
        if setting["kind"] == "boxes":
            mask = _boxes(height, width, setting["kept"], generator)
        else:
            sides = (height, width if setting["kind"] == "pixels" else 1)
            mask = (torch.rand(sides, generator=generator) < setting["kept"]).float().expand(height, width)
        noise = GaussianNoise(setting["sigma"] / 255, rng=generator)
        return Inpainting(shape, mask=mask.expand(1, *shape).clone(), noise_model=noise)


def _boxes(height: int, width: int, kept: float, generator: torch.Generator) -> Tensor:
    """Boxes at random places, one after the other, until no more than this share is kept."""
    mask = torch.ones(height, width)
    side = min(SIDE, height, width)
    while mask.mean() > kept:
        row, column = (int(torch.randint(length - side + 1, (), generator=generator)) for length in (height, width))
        mask[row : row + side, column : column + side] = 0
    return mask
