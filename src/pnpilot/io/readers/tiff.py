"""TIFF, which microscopes and cameras write."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BadInput, require
from ..images import MOST_PIXELS, TOO_LARGE
from ..raw import COLOUR, SLICE, Raw, Scratch, Stored, checked_shape
from ._decoded import decoded
from .base import READERS, Reader

NAMES = {"Y": "y", "X": "x", "S": COLOUR, "Z": SLICE, "T": "time", "C": "channel"}
"""What the axes that tifffile finds are called here."""
SEQUENCES = ("I", "Q")
"""Pages that count something nobody said."""
PLAIN = ("MINISBLACK", "RGB")
"""Numbers that are brightness as they stand; palettes and the like are for Pillow."""
UNPACKED = ("NONE", "ADOBE_DEFLATE", "DEFLATE", "PACKBITS", "LZMA")
"""What tifffile unpacks without further libraries; Pillow knows others."""


@READERS.register("tiff")
class Tiff(Reader):
    """TIFF, also of microscopes: stacks, channels, times, grey or in colour, of integers or floats."""

    suffixes = (".tif", ".tiff")
    known_by = "its first bytes"
    shape = "y, x; before them what counts images (slice, channel, time), behind them colour, where there are three"
    units = "brightness, at the depth of the file"

    @classmethod
    def knows(cls, path: Path, head: bytes) -> bool:  # noqa: ARG003
        """Also those for files over 4 GB."""
        return head.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"))

    def read(self, path: Path, scratch: Scratch, key: str | None = None) -> Raw:
        """Leave in the file what is not packed; `key` is the number of a series, where there are several."""
        import tifffile

        with _quiet(), tifffile.TiffFile(path, _multifile=False) as file:
            series = _chosen(file.series, key)
            first = series.keyframe
            if first.photometric.name not in PLAIN or first.compression.name not in UNPACKED or series.dtype == bool:
                require(len(file.series) == 1, "it holds packed pictures of several sizes: save one of them by itself")
                return decoded(path, scratch)
            _check(series, path)
            array: Any
            if series.dataoffset is not None and not first.is_tiled:
                rest = path.stat().st_size - series.dataoffset
                require(
                    series.nbytes <= rest, f"it is cut short: its pixels take {series.nbytes} bytes, {rest} are there"
                )
                array = np.memmap(path, file.byteorder + series.dtype.char, "r", series.dataoffset, series.shape)
            else:
                array = scratch.array(series.shape, series.dtype)
                series.asarray(out=array)
            header = {"resolution": first.resolution, "resolutionunit": int(first.resolutionunit)}
        array, axes, notes = _named(array, series.axes)
        return Raw(Stored(array, axes), "tiff", pictures=True, header=header, notes=notes)


@contextmanager
def _quiet() -> Iterator[None]:
    """tifffile logs what it finds odd; what matters is raised."""
    logger = logging.getLogger("tifffile")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _chosen(every: Sequence[Any], key: str | None) -> Any:
    require(len(every) > 0, "it holds no picture")
    sizes = "; ".join(f"{number}: {one.axes} {'×'.join(map(str, one.shape))}" for number, one in enumerate(every))
    if key is None:
        require(
            len(every) == 1, f"its pages differ in size or depth, choose some of them by --key 0 and so on ({sizes})"
        )
        return every[0]
    if not (key.isdecimal() and int(key) < len(every)):
        raise BadInput(f"--key chooses a series of pictures by its number ({sizes}), got {key!r}")
    return every[int(key)]


def _check(series: Any, path: Path) -> None:
    height, width = (series.shape[series.axes.index(code)] for code in "YX") if {*"YX"} <= {*series.axes} else (0, 0)
    require(min(height, width) > 0, f"its axes are {series.axes}: there are no rows and columns")
    require(height * width <= MOST_PIXELS, f"{path} is not a readable image: {TOO_LARGE}")
    require(series.dtype is not None and series.dtype.kind in "uif", f"its pixels are of type {series.dtype}")
    checked_shape(series.shape, series.dtype, path.stat().st_size, "its picture")


def _named(array: np.ndarray, codes: str) -> tuple[np.ndarray, tuple[str, ...], list[str]]:
    """The picture without axes of length one, but for rows and columns, their names, and what was left out."""
    notes: list[str] = []
    for code in [code for code in codes if code not in "YX" and array.shape[codes.index(code)] == 1]:
        array, codes = array.squeeze(codes.index(code)), codes.replace(code, "")
    names = [NAMES.get(code, SLICE if code in SEQUENCES and "Z" not in codes else code.lower()) for code in codes]
    if COLOUR in names and array.shape[(at := names.index(COLOUR))] != 3:
        samples = array.shape[at]
        require(samples in (2, 4), f"its pixels have {samples} colours: three are known, or none")
        notes.append("its transparency was left out")
        array = array.take(0, at) if samples == 2 else array[(slice(None),) * at + (slice(3),)]
        names = [name for name in names if name != COLOUR or samples == 4]
    require(len(set(names)) == len(names), f"two of its axes are of one kind: {', '.join(names)}")
    return array, tuple(names), notes
