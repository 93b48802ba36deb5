"""NumPy's own format."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..files import reserve
from .base import WRITERS, Volume, Writer


@WRITERS.register("numpy")
class NumPy(Writer):
    """NumPy's .npy: complex numbers, or real ones for pictures, in the shape of the volume."""

    suffix = ".npy"
    holds = "complex numbers, no geometry"

    def write(self, folder: Path, name: str, volume: Volume) -> list[Path]:
        """One file, written image by image."""
        path = folder / f"{name}{self.suffix}"
        kind = np.complex64 if volume.pixels is None else np.float32
        array = np.lib.format.open_memmap(path, "w+", kind, volume.shape)
        reserve(path, path.stat().st_size)
        for index, image in zip(np.ndindex(volume.shape[:-2]), volume, strict=True):
            array[index] = image if volume.pixels is None else image.real
        array.flush()
        return [path]
