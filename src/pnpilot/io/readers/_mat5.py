"""MATLAB's older files. SciPy reads them, after a look at numbers that could end the process if they are wrong."""

from __future__ import annotations

import math
import struct
import warnings
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from ...errors import BadInput, first_line, require
from ..raw import checked_shape
from ._lazy import CHUNK, Stream

SIZES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8}
"""Bytes of a number, by the codes of the types of numbers. SciPy takes any other code for a place in memory."""
MATRIX, PACKED = 14, 15
"""Codes of the parts that a file consists of."""
CLASSES = range(6, 16)
"""Those of full arrays of numbers."""
OPAQUE = 17
"""A class without sizes."""
COMPLEX = 1 << 11
HEADER = 128
LONGEST = 2**16
"""Bytes of sizes or a name; SciPy would read as many as a file asks for."""
MOST_VARIABLES = 10_000
UNPACKED, SMALL, LARGE = 100, 2**28, 2**32
"""SciPy needs a few times the memory of a variable. One may claim so many times the bytes of its file; any may claim
the smaller number of bytes, and none the larger one: twice what MATLAB writes, which may count as complex."""


def listed(path: Path) -> list[tuple[str, tuple[int, ...], str]]:
    """The names, shapes and classes of the variables of a file."""
    import scipy.io

    _check(path)
    try:
        found = scipy.io.whosmat(str(path), appendmat=False)
    except Exception as error:
        raise BadInput(f"it is not a whole MATLAB file: {first_line(error)}") from error
    return [(name, tuple(shape), kind) for name, shape, kind in found if not name.startswith("__")]  # MATLAB's own


def loaded(path: Path, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A variable of numbers, in memory. `shape` and `dtype` are the largest that it claims to have."""
    import scipy.io

    size = path.stat().st_size
    checked_shape(shape, dtype, size, name)
    claimed = math.prod(shape) * dtype.itemsize
    require(
        claimed <= min(LARGE, max(SMALL, UNPACKED * size)),
        f"{name} claims {claimed:.3g} bytes, more than a file of {size} bytes is read for",
    )
    _check(path, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about numbers that overflow, and about other variables
        array = scipy.io.loadmat(str(path), appendmat=False, variable_names=[name])[name]
    require(isinstance(array, np.ndarray) and array.dtype.kind in "biufc", f"{name} holds no numbers")
    return array


def _check(path: Path, wanted: str | None = None) -> None:
    """Refuse names and sizes of any length, and a wanted variable that is not as many numbers as its sizes ask for."""
    with path.open("rb") as file:
        start = file.read(HEADER)
        if 0 in start[:4]:  # version 4, which is simpler
            return
        order = "<" if start[126:128] == b"IM" else ">"
        at = HEADER
        for _ in range(MOST_VARIABLES):
            tag = file.read(8)
            if len(tag) < 8:
                return
            kind, size = struct.unpack(f"{order}II", tag)
            require(kind in (MATRIX, PACKED) and size > 0, "it is damaged: one of its parts is no variable")
            parts = _Parts(Inflated(file, size) if kind == PACKED else file, order)
            if kind == PACKED:
                parts.take(8)  # says again that it is a matrix
            _check_variable(parts, wanted)
            at += 8 + size
            file.seek(at)
    require(False, f"it holds more than {MOST_VARIABLES} variables")


def _check_variable(parts: _Parts, wanted: str | None) -> None:
    flags = struct.unpack(f"{parts.order}I", parts.take(16)[8:12])[0]
    kind = flags & 0xFF
    sizes = b"" if kind == OPAQUE else parts.small()
    name = parts.small().decode("latin1")
    if name != wanted:
        return
    require(kind in CLASSES, f"{name} is no full array of numbers")
    count = math.prod(struct.unpack(f"{parts.order}{len(sizes) // 4}i", sizes[: len(sizes) // 4 * 4]))
    for _ in range(2 if flags & COMPLEX else 1):
        parts.pass_numbers(count, name)


class Inflated:
    """What is packed in a part of a file."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self.file, self.left, self.inflater = file, size, zlib.decompressobj()

    def read(self, size: int, /) -> bytes:
        """The next bytes, as many at most."""
        while True:
            packed = self.inflater.unconsumed_tail
            if not packed:
                packed = self.file.read(min(CHUNK, self.left))
                self.left -= len(packed)
            found = self.inflater.decompress(packed, size)
            if found or not packed:
                return found


class _Parts:
    """Parts of a variable, each with the code of its type and its length in front."""

    def __init__(self, stream: Stream, order: str) -> None:
        self.stream, self.order, self.padding = stream, order, 0

    def take(self, size: int, keep: bool = True) -> bytes:
        """As many bytes; if they are not to be kept, they are only passed over."""
        kept = []
        while size > 0:
            chunk = self.stream.read(min(size, CHUNK))
            require(len(chunk) > 0, "it is cut short")
            size -= len(chunk)
            kept += [chunk] * keep
        return b"".join(kept)

    def tag(self) -> tuple[int, int, bytes]:
        """The code and length of the next part, and its content where that is so short that it stands there as well."""
        self.take(self.padding)
        tag = self.take(8)
        kind, size = struct.unpack(f"{self.order}II", tag)
        short = kind >> 16
        if short:
            require(short <= 4, "it is damaged: a part of it has no possible length")
            self.padding = 0
            return kind & 0xFFFF, short, tag[4 : 4 + short]
        self.padding = -size % 8
        return kind, size, b""

    def small(self) -> bytes:
        """The content of a part that cannot be large."""
        _, size, content = self.tag()
        require(size <= LONGEST, "it is damaged: the name or the sizes of a variable are endless")
        return content or self.take(size)

    def pass_numbers(self, count: int, name: str) -> None:
        """Pass over so many numbers, or refuse what is there instead."""
        kind, size, content = self.tag()
        require(kind in SIZES, f"{name} is damaged: there is no type {kind} of numbers")
        needed = count * SIZES[kind]
        require(size == needed, f"{name} is damaged: it has {size} bytes of numbers, its sizes ask for {needed}")
        if not content:
            self.take(size, keep=False)
