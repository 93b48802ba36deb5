"""BART's files: a header NAME.hdr with the sizes, and NAME.cfl with complex numbers, the first axis the fastest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import BadInput, first_line, require
from .files import reserve

LARGEST = 2**36
"""Bytes that are read at once; a header may ask for any number."""
MOST_AXES = 16


def read_cfl(path: Path) -> np.ndarray:
    """The array, with as many axes as the header names; `path` may end in .cfl, .hdr or neither."""
    return np.array(map_cfl(path, LARGEST))


def map_cfl(path: Path, largest: int = 2**40) -> np.memmap:
    """The same array, left in its file until a part is asked for."""
    header, data = _pair(path)
    try:
        lines = [line for line in header.read_text(errors="replace")[:10_000].splitlines() if line[:1] != "#"]
        sizes = [int(word) for word in lines[0].split()]
        require(0 < len(sizes) <= MOST_AXES and min(sizes) > 0, f"its header has no sizes: {lines[0][:80]!r}")
        needed, found = 8 * math.prod(sizes), data.stat().st_size
        require(needed <= largest, f"its header asks for {needed:.3g} bytes, the most are {largest}")
        require(found == needed, f"its header asks for {needed} bytes, {data.name} has {found}")
        return np.memmap(data, np.complex64, "r", shape=tuple(sizes), order="F")
    except (OSError, ValueError, IndexError, OverflowError) as error:
        raise BadInput(f"{path} is not a readable pair of BART files (.hdr, .cfl): {first_line(error)}") from error


def write_cfl(path: Path, array: np.ndarray) -> None:
    """Write both files."""
    header, data = _pair(path)
    header.write_text("# Dimensions\n" + " ".join(map(str, array.shape)) + "\n")
    array.astype(np.complex64).ravel(order="F").tofile(data)


def create_cfl(path: Path, sizes: Sequence[int]) -> tuple[Path, Path, np.memmap]:
    """Both files, full of zeros, and their numbers as an array on disk, for what is too large for the memory."""
    header, data = _pair(path)
    header.write_text("# Dimensions\n" + " ".join(map(str, sizes)) + "\n")
    array = np.memmap(data, np.complex64, "w+", shape=tuple(sizes), order="F")
    reserve(data, array.nbytes)
    return header, data, array


def _pair(path: Path) -> tuple[Path, Path]:
    stem = path.with_suffix("") if path.suffix in (".hdr", ".cfl") else path
    return stem.with_name(stem.name + ".hdr"), stem.with_name(stem.name + ".cfl")
