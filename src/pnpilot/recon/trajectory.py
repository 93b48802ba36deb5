"""Trajectories as files have them: which axis is what, in which units, and for how many pixels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from ..errors import BadInput, require
from ..io.raw import SPACE, Stored

SAMPLE = ("sample", "arm", *SPACE)
"""Axes of data that run along the trajectory: through a readout, and from one to the next."""
SLACK = 1.02
"""Trajectories reach so much further than they should, where they were measured or rounded."""
FLAT = 1e-3
"""A third component that is smaller than this, in units of the largest, is none."""
MOST_LEFT_OUT = 4.0
"""Readouts with steps finer than this many times what the density resolves were read out faster than needed."""
LARGEST = 2048
"""Pixels along a side; a trajectory for more is in units that nobody told."""


def placed(stored: Stored, lengths: Sequence[int], along: Sequence[int], free: Sequence[int]) -> Placed:
    """The trajectory of data with axes of these lengths; it runs along axes `along`, and may along those of `free`."""
    array = np.asarray(stored.data[tuple(slice(None) for _ in stored.data.shape)])
    require(array.dtype.kind in "biufc", f"a trajectory holds numbers, not {array.dtype}")
    require(bool(np.isfinite(array).all()), "the trajectory holds NaN or infinite values")
    tried = []
    for positions in _components(array):
        long = [length for length in positions.shape[:-1] if length > 1]
        tried.append("×".join(map(str, long)))
        if found := _matches(long, lengths, along, free):
            return Placed(positions.reshape(*long, positions.shape[-1]), found[0])
    shown = "×".join(str(length) for length in lengths)
    seen = f"there would be {' or '.join(tried)}" if tried else "it is neither"
    raise BadInput(
        f"the trajectory {tuple(array.shape)} does not fit data {shown}: it must be complex, kx + i·ky, or have two or "
        f"three components as its first or last axis, and those of the samples besides, in their order; {seen}"
    )


def _components(array: np.ndarray) -> Iterator[np.ndarray]:
    """What an array may be as positions (..., 2 or 3)."""
    if np.iscomplexobj(array) and np.abs(array.imag).any():
        yield np.stack([array.real, array.imag], -1)
    else:
        for axis in dict.fromkeys((0, array.ndim - 1)):
            if array.shape[axis] in (2, 3):
                yield np.moveaxis(array.real, axis, -1)


def _matches(
    long: Sequence[int], lengths: Sequence[int], along: Sequence[int], free: Sequence[int]
) -> list[tuple[int, ...]]:
    """Axes of the data that axes of the trajectory may be, in their order: all of `along`, and some of `free`.

    There may be as many arms as coils: arms are next to samples, so that axes that are close to each other come first.
    """
    fitting = [
        axes
        for axes in itertools.combinations(sorted({*along, *free}), len(long))
        if set(along) <= set(axes) and [lengths[axis] for axis in axes] == list(long)
    ]
    return sorted(fitting, key=lambda axes: axes[-1] - axes[0] if axes else 0)


class Placed:
    """Positions of samples, and the axes of the data that they run along."""

    def __init__(self, positions: np.ndarray, axes: tuple[int, ...]) -> None:
        """`positions` (..., 2 or 3) have the column first, and an axis for each of `axes`."""
        reach = np.abs(positions).reshape(-1, positions.shape[-1]).max(0)
        require(float(reach.max()) > 0, "the trajectory is zero everywhere")
        flat = positions.shape[-1] == 2 or reach[2] <= FLAT * reach.max()
        require(flat, "the trajectory leaves its plane: only slices are reconstructed, one at a time")
        self.positions, self.axes, self.reach = positions[..., 1::-1].astype(np.float64), axes, float(reach[:2].max())

    def cycles(self, matrix: int | None) -> tuple[np.ndarray, int, str]:
        """Positions (..., 2) in cycles per pixel, rows first, how many pixels a side has, and how that was found."""
        if self.reach <= 0.5 * SLACK:
            positions, unit = self.positions, "cycles per pixel"
        elif self.reach <= math.pi * SLACK:
            positions, unit = self.positions / (2 * math.pi), "radians per pixel"
        else:
            side = matrix or 2 * math.ceil(0.999 * self.reach)
            require(side <= LARGEST, f"the trajectory reaches to {self.reach:.4g}: in which units? --matrix N tells")
            fits = 2 * self.reach <= SLACK * side
            require(fits, f"the trajectory reaches to {self.reach:.4g}, more than half of a matrix of {side}")
            told = f"trajectory in cycles per field of view, which is {side}×{side} pixels"
            return np.clip(self.positions / side, -0.5, 0.5), side, told
        side = matrix or self._side(positions)
        require(side <= LARGEST, f"the trajectory is dense enough for {side} pixels a side: --matrix N tells how many")
        source = "as told" if matrix else "judging by its density; --matrix N tells otherwise"
        return np.clip(positions, -0.5, 0.5), side, f"trajectory in {unit}; {side}×{side} pixels, {source}"

    def _side(self, positions: np.ndarray) -> int:
        """How many pixels a full set of so many samples resolves, or a readout with such steps, if that is more."""
        radius = np.linalg.norm(positions, axis=-1)
        by_density = math.sqrt(radius.size / math.pi) / float(radius.max())
        steps = [
            float(np.quantile(np.linalg.norm(np.diff(positions, axis=axis), axis=-1), 0.99))
            for axis, length in enumerate(radius.shape)
            if length > 1
        ]
        by_step = 1 / max(min(steps), 1e-12)
        return 2 * round(max(by_density, min(by_step, MOST_LEFT_OUT * by_density)) / 2)
