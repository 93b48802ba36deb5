"""K-space of one image after the other, whatever the file's order; averages are averaged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import BadInput, PnPilotError, first_line, require
from ..io.raw import AVERAGE, COIL, NOT_IMAGES, PART, SET, SLICE, SPACE, Lazy, Stored

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

    def beside(self, other: Kspace, number: int) -> int:
        """Which of its images goes with one of another array, where it may lack axes that count images there."""
        place = other.place(number)
        if all(name in place for name in self.counting):
            places = [place[name] for name in self.counting]
            return int(np.ravel_multi_index(places, self.shape)) if places else 0
        return number

    def goes_with(self, other: Kspace) -> bool:
        """Whether it has an image for every image of another array."""
        if all(name in other.counting for name in self.counting):
            return all(self.lengths[name] == other.lengths[name] for name in self.counting)
        return len(self) == len(other)

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
