"""K-space of one image after the other: averages averaged, a third axis transformed, whatever the file's order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..errors import BadInput, PnPilotError, first_line, require
from ..io.raw import AVERAGE, COIL, NOT_IMAGES, PART, SET, SLICE, SPACE, Lazy, Scratch, Stored
from .sampling import ROUNDING

LARGEST = 2**33
"""Bytes of one image with all its coils; more are not what this is for."""


@dataclass(frozen=True)
class Kspace:
    """An array with a name for every axis, read image by image."""

    data: Lazy
    axes: tuple[str, ...]
    plane: tuple[str, str] = ("y", "x")
    """What is left of space, in the order of rows and columns."""

    @classmethod
    def of(cls, stored: Stored) -> Kspace:
        """The images of an array whose third axis of space, if there is one, is no k-space any more."""
        assert stored.axes is not None
        plane = [name for name in stored.axes if name in SPACE]
        require(len(plane) == 2, f"an image has two axes of space, not {', '.join(plane) or 'none'}")
        known = cls(stored.data, stored.axes, (plane[0], plane[1]))
        sizes = {name: known.lengths.get(name, 1) for name in (COIL, SET, AVERAGE, PART, *plane)}
        needed = 8 * math.prod(sizes.values())
        require(needed <= LARGEST, f"one image with all its coils has {needed / 1e9:.3g} GB")
        return known

    @cached_property
    def lengths(self) -> dict[str, int]:
        """How long each axis is."""
        return dict(zip(self.axes, map(int, self.data.shape), strict=True))

    @cached_property
    def counting(self) -> tuple[str, ...]:
        """The axes that count images, slices last."""
        names = [name for name in self.axes if name not in NOT_IMAGES and self.lengths[name] > 1]
        return tuple(sorted(names, key=lambda name: name.endswith(SLICE)))

    @property
    def shape(self) -> tuple[int, ...]:
        """How many images along each of those axes."""
        return tuple(self.lengths[name] for name in self.counting)

    def __len__(self) -> int:
        return math.prod(self.shape)

    def place(self, number: int) -> dict[str, int]:
        """Where an image is along the axes that count images, the last the fastest."""
        return (
            dict(zip(self.counting, map(int, np.unravel_index(number, self.shape)), strict=True)) if self.shape else {}
        )

    def __getitem__(self, number: int) -> np.ndarray:
        """Complex (sets, coils, rows, columns)."""
        where = self.place(number)
        index = tuple(slice(None) if name in NOT_IMAGES else where.get(name, 0) for name in self.axes)
        left = [name for name in self.axes if name in NOT_IMAGES]
        try:
            part = np.asarray(self.data[index])
        except PnPilotError:
            raise
        except Exception as error:  # a damaged part of a file makes libraries raise nearly anything
            raise BadInput(f"it cannot be read: {first_line(error)}") from error
        return arranged(part, left, self.plane)


def arranged(part: np.ndarray, axes: list[str], plane: tuple[str, ...]) -> np.ndarray:
    """Complex (sets, coils, *plane) from an array with these axes."""
    if PART in axes:
        part = np.moveaxis(part, axes.index(PART), -1)
        part, axes = part[..., 0] + 1j * part[..., 1], [name for name in axes if name != PART]
    if AVERAGE in axes:
        # Averages may have been cut short: only those that have a sample count for it.
        place = axes.index(AVERAGE)
        part = part.sum(place) / np.maximum((part != 0).sum(place), 1)
        axes = [name for name in axes if name != AVERAGE]
    for name in (COIL, SET):
        if name not in axes:
            part, axes = part[None], [name, *axes]
    return np.moveaxis(part, [axes.index(name) for name in (SET, COIL, *plane)], range(2 + len(plane))).astype(
        np.complex64
    )


def planes(stored: Stored, scratch: Scratch) -> tuple[Stored, list[str]]:
    """Slices of a volume that was encoded along three axes: one that was measured whole is transformed first."""
    assert stored.axes is not None
    axes = stored.axes
    space = [name for name in axes if name in SPACE]
    while len(space) > 2 and (thin := [name for name in space if stored.data.shape[axes.index(name)] == 1]):
        space.remove(thin[0])
    axes = tuple("one" if name in SPACE and name not in space else name for name in axes)
    stored = replace(stored, axes=axes)
    if len(space) < 3:
        return stored, []
    mask = _volume_mask(stored, space)
    whole = [name for name in space if _separable(mask, space.index(name))]
    require(bool(whole), "all three axes of k-space are undersampled: one of them must be measured whole")
    along = next(name for name in SPACE if name in whole)
    note = f"k-space along {along} was measured whole: it is transformed first, and each of its {{}} points is an image"
    return _transformed(stored, along, scratch), [note.format(stored.data.shape[axes.index(along)])]


def _volume_mask(stored: Stored, space: list[str]) -> np.ndarray:
    """Which samples of the first volume are not zero, looking at one coil after the other."""
    found: np.ndarray | None = None
    for volume in _volumes(stored, first=True):
        strength = np.abs(stored.data[volume]).reshape([length for length in _lengths(stored, volume)])
        mask = strength > ROUNDING * strength.max()
        found = mask if found is None else found | mask
    assert found is not None
    order = [name for name in (stored.axes or ()) if name in space]
    return np.moveaxis(found, [order.index(name) for name in space], range(3))


def _lengths(stored: Stored, volume: tuple[slice | int, ...]) -> Iterator[int]:
    return (size for size, part in zip(stored.data.shape, volume, strict=True) if isinstance(part, slice) and size > 1)


def _separable(mask: np.ndarray, axis: int) -> bool:
    """Whether a mask has the same samples in every plane along an axis that has any, and in most planes."""
    lines = np.moveaxis(mask, axis, 0).reshape(mask.shape[axis], -1)
    used = lines.any(1)
    return bool((lines[used] == lines.any(0)).all()) and used.mean() > 0.5


def _volumes(stored: Stored, first: bool = False) -> Iterator[tuple[slice | int, ...]]:
    """Indices of the volumes of an array, one coil at a time, each with its axes of space whole."""
    assert stored.axes is not None
    counts = [1 if name in SPACE else length for name, length in zip(stored.axes, stored.data.shape, strict=True)]
    if first:
        kept = (COIL, PART)
        counts = [count if name in kept else 1 for name, count in zip(stored.axes, counts, strict=True)]
    for place in np.ndindex(*counts):
        yield tuple(slice(None) if name in SPACE else int(at) for name, at in zip(stored.axes, place, strict=True))


def _transformed(stored: Stored, along: str, scratch: Scratch) -> Stored:
    """The array on disk with one axis in image space, one coil of one volume in memory at a time."""
    assert stored.axes is not None
    axis = [name for name in stored.axes if name in SPACE].index(along)
    parts = PART in stored.axes
    require(not parts, "real and imaginary part as an axis of their own: save the volume as complex numbers")
    done = scratch.array(tuple(map(int, stored.data.shape)))
    for volume in _volumes(stored):
        kspace = np.fft.ifftshift(np.asarray(stored.data[volume]), axes=axis)
        done[volume] = np.fft.fftshift(np.fft.ifft(kspace, axis=axis, norm="ortho"), axes=axis)
    # Its name stays, as geometry goes by it, but it counts images now.
    return Stored(done, tuple(f"{along}-slice" if name == along else name for name in stored.axes))
