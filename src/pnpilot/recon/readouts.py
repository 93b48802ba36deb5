"""Samples along a trajectory, read image by image, and the trajectory of each image."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import BadInput, PnPilotError, first_line, require
from ..io.raw import AVERAGE, COIL, PART, Stored
from .options import Options
from .trajectory import SAMPLE, Placed, placed

MOST_SAMPLES = 2**27
"""Complex samples of one image."""


class Readouts:
    """The axes of samples: those along the trajectory, coils, and those that count images."""

    placed: Placed

    def __init__(self, measured: Stored, way: Stored, options: Options) -> None:
        """`way` is the trajectory; axes are named by the options, the format, or else the lengths of the trajectory."""
        self.data, self.notes = measured.data, list[str]()
        self.shape = tuple(map(int, self.data.shape))
        given = options.names or measured.axes
        self.axes = self._found(way) if given is None else self._named(tuple(given), way)
        self.lengths = dict(zip(self.axes, self.shape, strict=True))
        others = (*SAMPLE, COIL, PART, AVERAGE)
        self.counting = tuple(name for name in self.axes if name not in others and self.lengths[name] > 1)
        self.coils = self.lengths.get(COIL, 1)
        count = math.prod(self.lengths.get(name, 1) for name in (*SAMPLE, COIL, AVERAGE))
        require(count <= MOST_SAMPLES, f"one image has {count} samples; the most are {MOST_SAMPLES}")

    def _named(self, names: tuple[str, ...], way: Stored) -> tuple[str, ...]:
        require(
            len(names) == len(self.shape),
            f"the data have {len(self.shape)} axes, {self.shape}: --axes names {len(names)}",
        )
        require(len(set(names)) == len(names), "two axes have one name")
        long = [axis for axis, length in enumerate(self.shape) if length > 1]
        along = [axis for axis in long if names[axis] in SAMPLE]
        free = [axis for axis in long if names[axis] not in (*SAMPLE, COIL, PART, AVERAGE)]
        require(bool(along), f"none of the axes {', '.join(names)} runs along the trajectory: call it sample")
        self.placed = placed(way, self.shape, along, free)
        return names

    def _found(self, way: Stored) -> tuple[str, ...]:
        names = [f"one{axis}" for axis in range(len(self.shape))]
        if not np.issubdtype(self.data.dtype, np.complexfloating) and self.shape[-1] == 2:
            names[-1] = PART
        free = [axis for axis, length in enumerate(self.shape) if length > 1 and names[axis] != PART]
        self.placed = placed(way, self.shape, [], free)
        left = [axis for axis in free if axis not in self.placed.axes]
        told = f"the data have shape {self.shape}: name the axes, as in --axes sample,arm,coil,time"
        require(len(left) <= 1 and len(self.placed.axes) <= 2, told)
        for name, axis in (*zip(SAMPLE, self.placed.axes, strict=False), *((COIL, axis) for axis in left)):
            names[axis] = name
        words = [f"axis {axis} for {names[axis]}" for axis in sorted({*self.placed.axes, *left})]
        self.notes.append(f"took {', '.join(words)}; --axes names them otherwise")
        return tuple(names)

    def samples(self, where: dict[str, int]) -> np.ndarray:
        """Complex (coils, samples) of the image at this place, in the order of the trajectory's axes."""
        left = [name for name in self.axes if name not in where]
        try:
            part = np.asarray(self.data[self._index(self.axes, where)])
        except PnPilotError:
            raise
        except Exception as error:  # a damaged part of a file makes libraries raise nearly anything
            raise BadInput(f"it cannot be read: {first_line(error)}") from error
        if PART in left:
            part = np.moveaxis(part, left.index(PART), -1)
            part, left = part[..., 0] + 1j * part[..., 1], [name for name in left if name != PART]
        if AVERAGE in left:
            part, left = part.mean(left.index(AVERAGE)), [name for name in left if name != AVERAGE]
        if COIL in left:
            part = np.moveaxis(part, left.index(COIL), 0)
        found = np.ascontiguousarray(part.reshape(self.coils, -1), np.complex64)
        require(bool(np.isfinite(found).all()), "k-space holds NaN or infinite values")
        return found

    def own(self, values: np.ndarray, where: dict[str, int]) -> np.ndarray:
        """What belongs to the image, of values (..., further) with the axes of the trajectory."""
        return values[self._index(tuple(self.axes[axis] for axis in self.placed.axes), where)]

    @staticmethod
    def _index(axes: tuple[str, ...], where: dict[str, int]) -> tuple[Any, ...]:
        return tuple(where.get(name, slice(None)) for name in axes)
