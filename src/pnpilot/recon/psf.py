"""Point-spread functions: from what a file holds to a blur kernel, each step told in a sentence."""

from __future__ import annotations

import math

import numpy as np

from ..errors import require
from ..io.images import MOST_PIXELS
from ..io.raw import COLOUR, Stored

FLAT, LOW = 0.4, 0.25
"""Corners are background if they differ by less than this share of themselves, and are less than this of the peak."""
CORNERS = 8
"""Corners are squares of an eighth of the shorter side; of fewer than two pixels a side they tell nothing."""
STANDS_OUT = 3.0
"""What does not exceed the background by this many times its noise is background."""
NEGATIVE = 0.1
"""Values below zero may add up to this share of the others: that much noise is cut off, more is a mistake."""
LOST = 1e-3
"""The light that may fall beyond the kernel, which is no larger than it must be."""


def point_spread(stored: Stored, background: bool = True, centring: bool = True) -> tuple[np.ndarray, dict[str, str]]:
    """The kernel (1 or 3, h, w), of odd sides, centred, with sums of one; and what was done, by step."""
    light, said = _colours_first(stored), {}
    require(bool(np.isfinite(light).all()), "the point-spread function holds NaN or infinite values")
    if background and (level := _background(light)) is not None:
        light = _above(light, *level)
        said["background"] = f"the background of the point-spread function, {level[0]:.4g}, was taken off"
    below, above = -light.clip(None, 0).sum(), light.clip(0).sum()
    require(above > 0, "the point-spread function is zero everywhere")
    require(
        below <= NEGATIVE * above,
        f"the point-spread function has values below zero, {100 * below / above:.0f} % of the others: it must be light",
    )
    light = light.clip(0)
    sums = light.sum((1, 2), keepdims=True)
    require(bool((sums > 0).all()), "the point-spread function is zero in one of its colours")
    kernel = light / sums
    middle = tuple(length // 2 for length in kernel.shape[1:])
    centre = middle
    if centring:
        centre = _centre(kernel)
        if centre != middle:
            said["centring"] = (
                f"the centre of mass of the point-spread function, pixel {centre}, counts as its centre, not the "
                f"middle of its file, {middle}"
            )
    return _trimmed(kernel, centre), said


def _colours_first(stored: Stored) -> np.ndarray:
    shape = stored.data.shape
    require(math.prod(shape) <= 3 * MOST_PIXELS, f"the point-spread function has shape {shape}: that is too large")
    axes = stored.axes or (*(f"axis {axis}" for axis in range(len(shape) - 2)), "y", "x")[-len(shape) :]
    kept = [axis for axis in axes if axis in ("y", "x", COLOUR)]
    counting = [axis for axis, length in zip(axes, shape, strict=True) if axis not in kept and length > 1]
    require(
        not counting and "y" in kept and "x" in kept,
        f"the point-spread function has shape {shape}: it must be one picture, which is taken for all images",
    )
    array = np.asarray(stored.data[tuple(slice(None) if axis in kept else 0 for axis in axes)])
    require(array.dtype.kind in "uifb", f"the point-spread function holds {array.dtype}: it must be real numbers")
    array = array.astype(np.float64).transpose([kept.index(axis) for axis in (COLOUR, "y", "x") if axis in kept])
    array = array if array.ndim == 3 else array[None]
    require(len(array) in (1, 3), f"the point-spread function has {len(array)} colours: one or three are accepted")
    return array[:1] if bool((array == array[:1]).all()) else array


def _background(light: np.ndarray) -> tuple[float, float] | None:
    """The level of the corners and its noise, if they are flat: what a camera adds, and not the foot of a blur."""
    side = min(light.shape[1:]) // CORNERS
    if side < 2:
        return None
    corners = np.concatenate([light[:, rows, columns].ravel() for rows in _ends(side) for columns in _ends(side)])
    low, level, high = np.quantile(corners, (0.05, 0.5, 0.95))
    if not (0 < level < LOW * light.max() and high - low < FLAT * level):
        return None
    return float(level), float(corners.std())


def _ends(side: int) -> tuple[slice, slice]:
    return slice(side), slice(-side, None)


def _above(light: np.ndarray, level: float, noise: float) -> np.ndarray:
    return np.where(light > level + STANDS_OUT * noise, light - level, 0.0)


def _centre(kernel: np.ndarray) -> tuple[int, int]:
    """The pixel of its centre of mass; what falls between two counts as the later, as the middle of even sides does."""
    rows, columns = (kernel.mean(0).sum(axis) for axis in (1, 0))
    row, column = (float((line * np.arange(len(line))).sum() / line.sum()) for line in (rows, columns))
    return math.floor(row + 0.5 + 1e-6), math.floor(column + 0.5 + 1e-6)


def _trimmed(kernel: np.ndarray, centre: tuple[int, int]) -> np.ndarray:
    """As far around the centre as there is light, zero where the file ends before."""
    reach = [_reach(kernel.mean(0).sum(1 - axis), centre[axis]) for axis in (0, 1)]
    padded = np.pad(kernel, ((0, 0), *((far, far) for far in reach)))
    rows, columns = (slice(at, at + 2 * far + 1) for at, far in zip(centre, reach, strict=True))
    cut = padded[:, rows, columns]
    return (cut / cut.sum((1, 2), keepdims=True)).astype(np.float32)


def _reach(line: np.ndarray, centre: int) -> int:
    distance = np.abs(np.arange(len(line)) - centre)
    within = np.cumsum(np.bincount(distance, line))
    return int((within < (1 - LOST) * within[-1]).sum())
