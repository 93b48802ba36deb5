"""BART's pairs of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import require
from ..cfl import create_cfl
from .base import WRITERS, Volume, Writer

PLACES = {
    **{"x": 0, "y": 1, "z": 2, "echo": 5, "coefficient": 6, "coefficient2": 7, "iteration": 8, "shift": 9},
    **{"time": 10, "time2": 11, "level": 12, "slice": 13, "batch": 15, "contrast": 5, "repetition": 10},
}
"""BART's axes by the names of ours."""
FREE = (5, 10, 11, 15, 6, 7, 8, 9, 12)
"""Places for other names, in the order in which they are taken. Coils, sets of maps and averages have theirs."""
AXES = 16


@WRITERS.register("bart")
class Bart(Writer):
    """BART's .cfl and .hdr: complex numbers, each axis where BART has it."""

    suffix = ".cfl"
    holds = "complex numbers, no geometry"

    def write(self, folder: Path, name: str, volume: Volume) -> list[Path]:
        """The two files, written image by image."""
        places = bart_places(volume.axes)
        sizes = [1] * AXES
        for place, size in zip(places, volume.shape, strict=True):
            sizes[place] = size
        header, data, array = create_cfl(folder / name, sizes)
        # The same numbers, seen in the order of our axes: those of length one that are left are in front.
        others = [place for place in range(AXES) if place not in places]
        view = array.transpose(others + places)[(0,) * len(others)]
        for index, image in zip(np.ndindex(volume.shape[:-2]), volume, strict=True):
            view[index] = image
        array.flush()
        return [data, header]


def bart_places(axes: Sequence[str]) -> list[int]:
    """Which of BART's axes each of ours becomes."""
    known = dict(PLACES)
    if tuple(axes[-2:]) == ("y", "x") and "z" not in axes:
        known.update(y=1, x=2)  # BART's own order where the readout was transformed already
    taken: dict[str, int] = {}
    for axis in sorted(axes, key=lambda axis: axis not in known):
        wanted = (known[axis], *FREE) if axis in known else FREE
        place = next((place for place in wanted if place not in taken.values()), None)
        require(place is not None, f"BART has no place for the axes {', '.join(axes)}: choose --format hdf5")
        taken[axis] = int(place or 0)
    return [taken[axis] for axis in axes]
