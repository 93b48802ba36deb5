"""Pairs of BART's files, .cfl and .hdr."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..cfl import map_cfl
from ..raw import AVERAGE, COIL, SET, SLICE, Raw, Scratch, Stored
from ._lazy import without_names
from .base import READERS, Reader

OTHERS = (COIL, SET, "echo", "coefficient", "coefficient2", "iteration", "shift", "time", "time2", "level")
AXES = (*OTHERS, SLICE, AVERAGE, "batch")
"""What follows the three axes of space, in BART's order."""


@READERS.register("bart")
class Bart(Reader):
    """BART's pairs of files .cfl and .hdr: k-space, or coil maps."""

    suffixes = (".cfl", ".hdr")
    known_by = "the suffix .cfl, a .hdr that begins like BART's, or a name that lacks both and has such a .hdr"
    shape = "space, coil, set, echo, …, slice, average, batch: BART's order, without axes of length one"
    units = "any; BART's transforms are unitary, with the zero frequency in the middle"

    @classmethod
    def knows(cls, path: Path, head: bytes) -> bool:
        """NIfTI has headers of that name, too."""
        return path.suffix.lower() == ".cfl" or (path.suffix.lower() == ".hdr" and head.startswith(b"# Dimensions"))

    def read(self, path: Path, scratch: Scratch, key: str | None = None) -> Raw:  # noqa: ARG002
        """Leave the numbers in the .cfl file."""
        without_names(key)
        array: np.ndarray = map_cfl(path)
        array = np.expand_dims(array, tuple(range(array.ndim, 3)))
        long = [axis for axis in range(array.ndim) if array.shape[axis] > 1]
        space, others = [axis for axis in long if axis < 3], [axis for axis in long if axis >= 3]
        space += [axis for axis in range(3) if axis not in space][: max(0, 2 - len(space))]
        names = ("x", "y", "z")[: len(space)] if 0 in space else ("y", "x")
        kept = array[tuple(slice(None) if axis in space + others else 0 for axis in range(array.ndim))]
        return Raw(Stored(kept, (*names, *(AXES[axis - 3] for axis in others))), family="bart")
