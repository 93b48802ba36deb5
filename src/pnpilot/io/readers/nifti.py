"""NIfTI images."""

from __future__ import annotations

import gzip
import logging
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import require
from ..geometry import Geometry
from ..raw import SLICE, Raw, Scratch, Stored, checked_shape
from ._lazy import Scaled, unpacked, without_names
from .base import READERS, Reader

GZIP = b"\x1f\x8b"
LONGEST = 540
"""Bytes of the longer one of the two headers."""
AXES = ("x", "y", SLICE, "time", "vector", "sixth", "seventh")
MILLIMETRES = {"meter": 1000.0, "micron": 0.001}
"""In other units of length."""
QUIET = logging.Logger(__name__)
"""Hears of the small faults of a header, which are mended."""
QUIET.addHandler(logging.NullHandler())


@READERS.register("nifti")
class Nifti(Reader):
    """NIfTI (.nii, .nii.gz): magnitude images."""

    suffixes = (".nii", ".nii.gz")
    known_by = "its first bytes, unpacked where it is compressed"
    shape = "x, y, slice, time, vector, as many as there are"
    units = "any: those of magnitude images, slope and intercept applied"

    @classmethod
    def knows(cls, path: Path, head: bytes) -> bool:  # noqa: ARG003
        """Both versions have a signature."""
        if head.startswith(GZIP):
            try:
                head = zlib.decompressobj(31).decompress(head, LONGEST)
            except zlib.error:
                return False
        return head[344:348] == b"n+1\0" or head[4:8] == b"n+2\0"

    def read(self, path: Path, scratch: Scratch, key: str | None = None) -> Raw:
        """Numbers that are not compressed stay in their file; others are unpacked to the scratch folder."""
        without_names(key)
        with path.open("rb") as file:
            packed = file.read(2) == GZIP
        header = _header(path, packed)
        shape, dtype, start = _claims(header, path, packed)
        data: np.ndarray
        if packed:
            with gzip.open(path) as stream:
                stream.seek(start)
                data = unpacked(stream, scratch, shape, dtype, "F")
        else:
            data = np.memmap(path, dtype, "r", start, shape, "F")
        kept = [axis for axis, length in enumerate(shape) if axis < 3 or length > 1]
        data = data[tuple(slice(None) if axis in kept else 0 for axis in range(len(shape)))]
        axes = tuple(AXES[axis] for axis in kept)
        slope, intercept = header.get_slope_inter()
        scaled = Scaled(data, 1 if slope is None else slope, intercept or 0)
        raw = Raw(Stored(scaled, axes), "nifti", pictures=True, header=header)
        raw.geometry = _geometry(header.get_best_affine(), shape)
        if raw.geometry is None:
            raw.notes.append("where its pixels lie in space is not told by its header")
        return raw


def _header(path: Path, packed: bool) -> Any:
    """The header alone: nibabel's own way to open a file goes by its name, and loads whatever follows the header."""
    import nibabel

    with gzip.open(path) if packed else path.open("rb") as file:
        head = file.read(LONGEST)
    kind: Any = nibabel.Nifti2Header if head[4:8] == b"n+2\0" else nibabel.Nifti1Header
    require(len(head) >= kind.sizeof_hdr, "it is cut short: its header is not whole")
    header = kind(head[: kind.sizeof_hdr], check=False)
    header.check_fix(QUIET)
    _to_millimetres(header)
    return header


def _to_millimetres(header: Any) -> None:
    """Lengths in metres or microns become millimetres, in the header too; those without a unit are taken for them."""
    try:
        space, time = header.get_xyzt_units()
    except KeyError:  # a code that means nothing
        return
    if space in MILLIMETRES:
        with np.errstate(all="ignore"):  # what overflows is no place in space, and is told
            header["pixdim"][1:4] *= MILLIMETRES[space]
            for name in (*(f"srow_{axis}" for axis in "xyz"), *(f"qoffset_{axis}" for axis in "xyz")):
                header[name] *= MILLIMETRES[space]
        header.set_xyzt_units("mm", time)


def _claims(header: Any, path: Path, packed: bool) -> tuple[tuple[int, ...], np.dtype, int]:
    """The shape, type and place of the numbers, refused if the file cannot hold them."""
    shape, dtype, start = tuple(map(int, header.get_data_shape())), header.get_data_dtype(), header.get_data_offset()
    require(2 <= len(shape) <= len(AXES), f"its shape is {shape}; an image has two axes at least")
    require(dtype.kind in "iuf", f"it holds {_named(dtype)}; NIfTI is read as magnitude images, of real numbers")
    stored = path.stat().st_size
    checked_shape(shape, dtype, stored, "its image")
    needed = start + int(np.prod(shape, dtype=object)) * dtype.itemsize
    require(packed or needed <= stored, f"it is cut short: its header asks for {needed} bytes, it has {stored}")
    return shape, dtype, start


def _named(dtype: np.dtype) -> str:
    return "complex numbers" if dtype.kind == "c" else "colours" if dtype.fields else f"numbers of type {dtype}"


def _geometry(affine: np.ndarray, shape: tuple[int, ...]) -> Geometry | None:
    with np.errstate(all="ignore"):
        volume = np.linalg.det(affine[:3, :3])
    usable = bool(np.isfinite(affine).all()) and np.isfinite(volume) and volume != 0
    return Geometry.of(affine, AXES[:3], (*shape, 1)[:3]) if usable else None
