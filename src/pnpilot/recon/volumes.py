"""Volumes that were encoded along three axes become slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from ..errors import require
from ..io.raw import COIL, PART, SPACE, Scratch, Stored
from .axes import nameless
from .fourier import to_image
from .kspace import Kspace
from .sampling import ROUNDING

LEAST = 0.5
"""An axis along which less than this was measured is not transformed first, even if it has no gaps."""


def planes(
    stored: Stored, scratch: Scratch, kept: Mapping[str, int] | None = None, like: Kspace | None = None
) -> tuple[Stored, list[str]]:
    """Slices of a volume that was encoded along three axes: one that was measured whole is transformed first.

    `kept` tells how many points in the middle of an axis are wanted. What is `like` other k-space is cut as that was.
    """
    assert stored.axes is not None
    axes = stored.axes
    space = [name for name in axes if name in SPACE]
    while len(space) > 2 and (thin := [name for name in space if stored.data.shape[axes.index(name)] == 1]):
        space.remove(thin[0])
    axes = tuple(nameless(at) if name in SPACE and name not in space else name for at, name in enumerate(axes))
    stored = replace(stored, axes=axes)
    if len(space) < 3:
        return stored, []
    if like is None:
        along, share = _whole(_volume_mask(stored), space)
    else:
        along, share = next(name for name in space if name not in like.plane), 1.0
    length = stored.data.shape[axes.index(along)]
    points = min((kept or {}).get(along, length), length)
    extent = "whole" if share == 1 else f"along {100 * share:.0f} % of its range, without gaps"
    wanted = (
        f"each of its {length} points" if points == length else f"each of the {points} in the middle of its {length}"
    )
    note = f"k-space along {along} was measured {extent}: it is transformed first, and {wanted} is an image"
    return _transformed(stored, along, points, scratch), [note]


def _whole(mask: np.ndarray, space: list[str]) -> tuple[str, float]:
    """The axis along which most was measured, without gaps and the same for all of the others, and how much of it."""
    shares: dict[str, float] = {}
    for axis, name in enumerate(space):
        lines = np.moveaxis(mask, axis, 0).reshape(mask.shape[axis], -1)
        used = lines.any(1)
        span = used.nonzero()[0]
        same = bool((lines[used] == lines.any(0)).all())
        if same and used.mean() > LEAST and span[-1] - span[0] + 1 == len(span):
            shares[name] = float(used.mean())
    require(bool(shares), "all three axes of k-space are undersampled: one of them must be measured whole")
    along = max((name for name in SPACE if name in shares), key=lambda name: shares[name])
    return along, shares[along]


def _volume_mask(stored: Stored) -> np.ndarray:
    """Which samples of the first volume are not zero, looking at one coil after the other."""
    found = np.zeros(1, bool)
    for volume in _volumes(stored, first=True):
        strength = np.nan_to_num(np.abs(stored.data[volume]), posinf=0)
        found = found | (strength > ROUNDING * strength.max())
    return found


def _volumes(stored: Stored, first: bool = False) -> Iterator[tuple[slice | int, ...]]:
    """Indices of the volumes of an array, one coil at a time, each with its axes of space whole."""
    assert stored.axes is not None
    counts = [1 if name in SPACE else length for name, length in zip(stored.axes, stored.data.shape, strict=True)]
    if first:
        kept = (COIL, PART)
        counts = [count if name in kept else 1 for name, count in zip(stored.axes, counts, strict=True)]
    for place in np.ndindex(*counts):
        yield tuple(slice(None) if name in SPACE else int(at) for name, at in zip(stored.axes, place, strict=True))


def _transformed(stored: Stored, along: str, points: int, scratch: Scratch) -> Stored:
    """The array on disk with the middle of one axis in image space, one coil of one volume in memory at a time."""
    assert stored.axes is not None
    axis = [name for name in stored.axes if name in SPACE].index(along)
    parts = PART in stored.axes
    require(not parts, "real and imaginary part as an axis of their own: save the volume as complex numbers")
    shape = [points if name == along else int(size) for name, size in zip(stored.axes, stored.data.shape, strict=True)]
    done = scratch.array(tuple(shape))
    for volume in _volumes(stored):
        image = to_image(np.asarray(stored.data[volume]), (axis,))
        first = image.shape[axis] // 2 - points // 2
        done[volume] = image.take(range(first, first + points), axis)
    # Its name stays, as geometry goes by it, but it counts images now.
    return Stored(done, tuple(f"{along}-slice" if name == along else name for name in stored.axes))
