"""MATLAB's files."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np

from ...errors import require
from ..files import reserve
from ._layout import counting_axes, image_numbers
from .base import WRITERS, Volume, Writer

LARGEST = 2**31 - 1
"""Bytes of a variable in a file of this kind."""
TITLE = b"MATLAB 5.0 MAT-file, written by pnpilot"


@WRITERS.register("matlab")
class Matlab(Writer):
    """MATLAB's .mat: complex numbers in `image` (rows, columns, slices, …), and the names of its `axes`."""

    suffix = ".mat"
    holds = "complex numbers, no geometry"
    extra = "mri"

    def write(self, folder: Path, name: str, volume: Volume) -> list[Path]:
        """One file, by way of an array on disk."""
        from scipy.io import savemat

        size = 8 * math.prod(volume.shape)
        require(size <= LARGEST, f"a .mat file holds at most 2 GB, not {size / 1e9:.1f}: choose --format hdf5")
        path = folder / f"{name}{self.suffix}"
        axes = counting_axes(volume)
        numbers = image_numbers(volume, axes)
        with tempfile.NamedTemporaryFile(dir=folder) as scratch:
            reserve(Path(scratch.name), size)
            array = np.memmap(scratch.name, np.complex64, "r+", shape=(*volume.shape[-2:], *numbers.shape), order="F")
            images = np.moveaxis(array, (0, 1), (-2, -1))
            for index in np.ndindex(numbers.shape):
                images[index] = volume.image(int(numbers[index]))
            names = np.array([*volume.axes[-2:], *axes], dtype=object)
            savemat(path, {"image": array, "axes": names})
        with path.open("r+b") as file:
            file.write(TITLE.ljust(116))  # in place of the date: the same images make the same file
        return [path]
