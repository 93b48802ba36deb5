"""NIfTI."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import require
from ._layout import affine, image_numbers, slice_axis
from .base import WRITERS, Volume, Writer

AFTER_SPACE = ("time", "vector", "sixth", "seventh")
MOST_AXES = 7
LONGEST_OF_FIRST = 2**15 - 1
"""The longest axis in the first version of the format."""
MILLIMETRES = 2
"""Code of a unit; codes up to 7 are of lengths."""
NOWHERE = "position in space unknown"


@WRITERS.register("nifti")
class Nifti(Writer):
    """NIfTI, compressed: magnitudes (rows, columns, slices, …), and where they lie."""

    suffix = ".nii.gz"
    holds = "magnitude and geometry"

    def write(self, folder: Path, name: str, volume: Volume) -> list[Path]:
        """One file, written image by image in the order of the format: the axes in front are the fastest."""
        numbers = image_numbers(volume, _counting(volume))
        shape = (*volume.shape[-2:], *numbers.shape)
        require(len(shape) <= MOST_AXES, f"NIfTI holds {MOST_AXES} axes, not {len(shape)}: choose --format hdf5")
        header = _header(volume, shape)
        path = folder / f"{name}{self.suffix}"
        # Without a name and a date in it, the same images make the same file. Noise is hardly worth compressing harder.
        with path.open("wb") as plain, gzip.GzipFile("", "wb", 1, plain, mtime=0) as file:
            header.write_to(file)
            file.write(bytes(header.get_data_offset() - file.tell()))
            for number in numbers.ravel(order="F"):
                magnitude = np.abs(volume.image(int(number)))
                file.write(magnitude.astype(header.get_data_dtype()).tobytes(order="F"))
        return [path]


def _counting(volume: Volume) -> list[str | None]:
    """The axes after rows and columns: the third is one of space, and the next are where the format has them."""
    inside = volume.axes[:-2]
    fixed = [slice_axis(volume), *AFTER_SPACE]
    others = [axis for axis in inside if axis not in fixed]
    while fixed and fixed[-1] not in inside and not (others and len(fixed) == 1):
        fixed.pop()
    return [*fixed, *others]


def _header(volume: Volume, shape: tuple[int, ...]) -> Any:
    """That of the file the images are from, if it was NIfTI, as far as it still holds; else a new one."""
    import nibabel

    old = volume.header if isinstance(volume.header, nibabel.Nifti1Header) else None
    matrix = affine(volume)
    second = isinstance(old, nibabel.Nifti2Header) or max(shape) > LONGEST_OF_FIRST
    # An affine that is the old header's leaves its codes as they are; any other replaces them.
    empty = np.broadcast_to(np.float32(0), shape)
    kind = nibabel.Nifti2Image if second else nibabel.Nifti1Image
    header = kind(empty, np.eye(4) if matrix is None else matrix, old).header
    header.set_data_dtype(np.float32)
    header["cal_min"] = header["cal_max"] = 0  # the range that is shown is another now
    header["xyzt_units"] = header["xyzt_units"] // 8 * 8 + (matrix is not None) * MILLIMETRES  # the rest is on time
    about = [volume.about] if volume.about else []
    if words := about if matrix is not None else [NOWHERE, *about]:
        header["descrip"] = "; ".join(words).encode("ascii", "replace")[: header["descrip"].dtype.itemsize - 1]
    return header
