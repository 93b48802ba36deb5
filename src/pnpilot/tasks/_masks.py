"""Sampling masks of k-space, centred: the zero frequency is at [H // 2, W // 2]."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from ..errors import BadInput, UnknownName

CALIBRATION = 20
"""Columns in the middle of k-space that show the coil maps."""
Mask = Callable[[int, int, float, torch.Generator], Tensor]


def radial(height: int, width: int, acceleration: float, generator: torch.Generator | None = None) -> Tensor:  # noqa: ARG001
    """Evenly spaced spokes through the centre, one for every `acceleration` samples of the larger side."""
    return _spokes(height, width, max(1, round(max(height, width) / acceleration))).clone()


@lru_cache(maxsize=256)
def _spokes(height: int, width: int, spokes: int) -> Tensor:
    rows = torch.arange(height, dtype=torch.float64)[:, None] - (height // 2 - 0.5)
    columns = torch.arange(width, dtype=torch.float64)[None, :] - (width // 2 - 0.5)
    mask = torch.zeros(height, width, dtype=torch.bool)
    for spoke in range(spokes):
        angle = math.pi * spoke / spokes
        distance = rows * math.cos(angle) + columns * math.sin(angle)
        # A spoke is a band of width one beside the line through the middle of the grid. Pixels exactly on the edge of a
        # band, which diagonals have, belong to falling spokes alone, as in the masks that the literature uses.
        edge = 1e-9 if math.cos(angle) >= 0 else -1e-9
        mask |= (distance > edge) & (distance < 1 - 1e-9)
    return mask.float()


def cartesian(height: int, width: int, acceleration: float, generator: torch.Generator) -> Tensor:
    """Whole columns: a fully sampled centre of 32 % of them, the rest at random."""
    columns = max(1, round(width / acceleration))
    return _columns(height, width, columns, max(1, round(0.32 * columns)), generator)


def calibrated(height: int, width: int, acceleration: float, generator: torch.Generator) -> Tensor:
    """Whole columns: a block of 20 in the middle, to read coil maps from, the rest at random."""
    columns = max(1, round(width / acceleration))
    return _columns(height, width, columns, min(CALIBRATION, columns), generator)


def _columns(height: int, width: int, columns: int, centre: int, generator: torch.Generator) -> Tensor:
    chosen = torch.zeros(width, dtype=torch.bool)
    first = (width - centre + 1) // 2
    chosen[first : first + centre] = True
    others = torch.nonzero(~chosen).flatten()
    order = torch.randperm(len(others), generator=generator)
    chosen[others[order[: columns - centre]]] = True
    return chosen.float().expand(height, width).clone()


def random(height: int, width: int, acceleration: float, generator: torch.Generator) -> Tensor:
    """Single points, denser towards the centre, which is fully sampled within a twelfth of the size."""
    rows = (torch.arange(height) - height // 2).float()[:, None] / (height / 2)
    columns = (torch.arange(width) - width // 2).float()[None, :] / (width / 2)
    radius = torch.sqrt(rows**2 + columns**2)
    # The smallest of −log(uniform)/weight are a weighted sample without replacement (exponential races).
    weight = (1 - radius / radius.max().clamp_min(1e-9)).clamp_min(0.02) ** 3
    race = -torch.log(torch.rand(height, width, generator=generator).clamp_min(1e-12)) / weight
    race[radius < 1 / 6] = -1
    count = max(1, round(height * width / acceleration))
    mask = torch.zeros(height * width)
    mask[race.flatten().argsort()[:count]] = 1
    return mask.reshape(height, width)


MASKS: dict[str, Mask] = {"radial": radial, "cartesian": cartesian, "calibrated": calibrated, "random": random}


def build_mask(kind: str, height: int, width: int, acceleration: float, generator: torch.Generator) -> Tensor:
    """A mask (H, W) of zeros and ones by name."""
    if kind not in MASKS:
        raise UnknownName(f"unknown mask {kind!r}; known: {', '.join(MASKS)}")
    if not acceleration >= 1:
        raise BadInput(f"the acceleration must be at least 1, got {acceleration}")
    return MASKS[kind](height, width, acceleration, generator)
