"""TIFF."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from ..readers.tiff import NAMES
from .base import WRITERS, Volume, Writer

CODES = {name: code for code, name in NAMES.items()}
LARGE = 2**32 - 2**25
"""Larger files are BigTIFF."""


@WRITERS.register("tiff")
class Tiff(Writer):
    """TIFF, one file with all images as its pages: pictures at the depth that they had, or magnitudes as floats."""

    suffix = ".tif"
    colours = True
    holds = "magnitude, or pictures at the depth that they had; axes by name, no geometry but the size of a pixel"

    def write(self, folder: Path, name: str, volume: Volume) -> list[Path]:
        """One file, written image by image."""
        import tifffile

        path = folder / f"{name}{self.suffix}"
        integers = volume.pixels is not None and volume.pixels.kind in "ui"
        dtype = np.dtype(volume.pixels if integers else np.float32).newbyteorder("=")
        shape = (*volume.shape, 3) if volume.colours else volume.shape
        large = math.prod(shape) * dtype.itemsize > LARGE
        scale = dict(volume.header) if _has_scale(volume.header) else {}
        with tifffile.TiffWriter(path, bigtiff=large) as file:
            file.write(
                _pages(volume, dtype),
                shape=shape,
                dtype=dtype,
                photometric="rgb" if volume.colours else "minisblack",
                metadata={"axes": _codes(volume), "about": volume.about},
                **scale,
            )
        return [path]


def _pages(volume: Volume, dtype: np.dtype) -> Iterator[np.ndarray]:
    for image in volume:
        seen = volume.seen(image).astype(dtype)
        yield np.ascontiguousarray(np.moveaxis(seen, 0, -1)) if volume.colours else seen


def _codes(volume: Volume) -> str:
    """A letter for each axis, as tifffile reads them back; an axis that has none of its own is a sequence."""
    counting = [CODES.get(axis, "Q") for axis in volume.axes[:-2]]
    codes = counting if len(set(counting)) == len(counting) else ["Q"] * len(counting)
    return "".join(codes) + "YX" + "S" * volume.colours


def _has_scale(header: object) -> bool:
    return isinstance(header, Mapping) and header.keys() == {"resolution", "resolutionunit"}
