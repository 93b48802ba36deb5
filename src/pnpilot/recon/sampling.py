"""What a mask shows: the block that maps are estimated from, and how far k-space reaches to either side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROUNDING = 1e-6
"""What is smaller than this, in units of the largest sample, is a zero."""
LOPSIDED = 0.8
"""One side of k-space that reaches less far than this share of the other was left out on purpose."""
REACHED = 0.75
"""How far the other side reaches at least: lines may be left out there, or k-space padded with zeros."""
LINES = 8
"""At least so many lines must be on the other side for that: fewer may be a whim of a random mask."""


def sampled(kspace: np.ndarray) -> np.ndarray:
    """Which samples (H, W) of k-space (coils, H, W) are not zero in all coils."""
    strength = np.abs(kspace).max(0)
    return strength > ROUNDING * strength.max()


def calibration_block(mask: np.ndarray) -> tuple[int, int]:
    """Height and width of the largest block in the middle of a mask (H, W) that is measured whole."""

    def whole(height: int, width: int) -> bool:
        return bool(middle_part(mask, height, width).all())

    side = 0
    while side < min(mask.shape) and whole(side + 1, side + 1):
        side += 1
    height, width = side, side
    while side and height < mask.shape[0] and whole(height + 1, width):
        height += 1
    while side and width < mask.shape[1] and whole(height, width + 1):
        width += 1
    return height, width


def middle_part(array: np.ndarray, height: int, width: int) -> np.ndarray:
    """The middle of the last two axes, around the zero frequency at n // 2."""
    rows, columns = (
        slice(size // 2 - part // 2, size // 2 - part // 2 + part)
        for size, part in zip(array.shape[-2:], (height, width), strict=True)
    )
    return array[..., rows, columns]


@dataclass(frozen=True)
class Lopsided:
    """k-space of which one side was measured less far: partial Fourier, or an asymmetric echo."""

    axis: int
    """0: among the rows, 1: among the columns."""
    symmetric: int
    """So many samples on either side of the zero frequency are inside what was measured."""
    share: float
    """How much of the whole range was measured."""


def lopsided(mask: np.ndarray) -> Lopsided | None:
    """The axis along which a mask (H, W) has only one side, if there is one."""
    for axis in (0, 1):
        lines = mask.any(1 - axis).nonzero()[0]
        if not len(lines):
            return None
        length, centre = mask.shape[axis], mask.shape[axis] // 2
        before, after = centre - int(lines[0]), int(lines[-1]) - centre
        near, far = sorted((before, after))
        alone = (centre - lines if before > after else lines - centre) > near
        if far > 0 and near < LOPSIDED * far and alone.sum() >= LINES and far >= REACHED * centre:
            return Lopsided(axis, max(near, 0), (near + far + 1) / length)
    return None
