"""HDF5, as fastMRI keeps reconstructions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from ..files import reserve
from ..raw import SLICE
from ._layout import affine
from .base import WRITERS, Volume, Writer


@WRITERS.register("hdf5")
class Hdf5(Writer):
    """HDF5: magnitudes in `reconstruction`, where fastMRI has them, and complex or real numbers in `image`."""

    suffix = ".h5"
    holds = "complex numbers, magnitudes and geometry"

    def write(self, folder: Path, name: str, volume: Volume) -> list[Path]:
        """One file, written image by image."""
        import h5py

        path = folder / f"{name}{self.suffix}"
        # fastMRI's readers expect an axis of slices, even of one.
        axes, shape = volume.axes, volume.shape
        if len(shape) == 2:
            axes, shape = (SLICE, *axes), (1, *shape)
        with h5py.File(path, "w") as file:
            reserve(path, 12 * math.prod(shape))  # this library may crash where the disk is full
            magnitudes = file.create_dataset("reconstruction", shape, np.float32)
            numbers = file.create_dataset("image", shape, np.complex64 if volume.pixels is None else np.float32)
            for index, image in zip(np.ndindex(shape[:-2]), volume, strict=True):
                magnitudes[index] = np.abs(image)
                numbers[index] = image if volume.pixels is None else image.real
            matrix = affine(volume)
            for attributes in (magnitudes.attrs, numbers.attrs):
                attributes["axes"] = list(axes)
                if matrix is not None:
                    attributes["affine"] = matrix
            file.attrs["about"] = volume.about
        return [path]
