"""NumPy's .npy and .npz."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from ...errors import BadInput, first_line, require
from ..raw import Raw, Scratch, Stored, checked_shape
from ._diffraction import diffraction
from ._lazy import unpacked, without_names
from ._trajectory import along_trajectory
from .base import READERS, Reader

ZIP = b"PK\x03\x04"
MEASURED = ("kspace", "ksp", "kdata", "k_space", "k-space", "data", "y")
MAPS = ("maps", "sens", "smaps", "csm", "coil_maps", "sensitivities", "sens_maps")
MASK = ("mask", "masks", "sampling_mask")
NOISE = ("noise",)
BESIDE = (*MAPS, *MASK, *NOISE, "axes")
"""What goes with k-space, and may have a file of its own."""
MOST_ARRAYS = 1000
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
LONGEST_NAMES = 10_000
"""Bytes of the names of axes."""


@READERS.register("numpy")
class Numpy(Reader):
    """NumPy's .npy, and .npz with k-space and what goes with it, or coded diffraction; real arrays are pictures."""

    suffixes = (".npy", ".npz")
    known_by = "its first bytes"
    shape = "told by an array `axes` of names in an .npz, and otherwise by nothing"
    units = "any"

    @classmethod
    def knows(cls, path: Path, head: bytes) -> bool:  # noqa: ARG003
        """An .npz is a ZIP archive, and so are many other things; its first member is a .npy."""
        length = int.from_bytes(head[26:28], "little")
        return head.startswith(npy.MAGIC_PREFIX) or (head.startswith(ZIP) and head[30 : 30 + length].endswith(b".npy"))

    def read(self, path: Path, scratch: Scratch, key: str | None = None) -> Raw:
        """Arrays that are not compressed stay in their file; others are unpacked to the scratch folder."""
        with path.open("rb") as file:
            if file.read(len(ZIP)) != ZIP:
                without_names(key)
                file.seek(0)
                return _understood(Stored(_mapped(path, 0, _Header.of(file))))
        with zipfile.ZipFile(path) as archive:
            return _Archive(path, archive, scratch).read(key)


def _understood(stored: Stored) -> Raw:
    shape, dtype = stored.data.shape, stored.data.dtype
    # A last axis of two may hold real and imaginary parts: whoever knows the other axes decides.
    if dtype.kind == "c" or (dtype.kind in "fiu" and shape[-1] == 2):
        return Raw(stored, family="numpy")
    if dtype.kind == "b" or (dtype.kind in "fiu" and len(shape) == 1):
        return Raw(None, family="numpy", mask=stored)
    require(
        dtype.kind in "fiu" and len(shape) in (2, 3),
        f"it holds {dtype} {shape}: k-space is complex, or has a last axis of two; pictures have two axes or three",
    )
    return Raw(stored, family="numpy", pictures=True)


@dataclass(frozen=True)
class _Header:
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype
    length: int

    @classmethod
    def of(cls, stream: IO[bytes]) -> _Header:
        version = npy.read_magic(stream)
        require(version in HEADERS, f"its NumPy format {version} is not known")
        try:
            return cls(*HEADERS[version](stream), stream.tell())
        except Exception as error:  # it is parsed as a piece of Python
            raise BadInput(f"its header is damaged: {first_line(error)[:80]}") from error

    @property
    def order(self) -> str:
        return "F" if self.fortran else "C"

    def check(self, stored: int) -> None:
        kind = "objects, which could run any code" if self.dtype.hasobject else f"{self.dtype}, which are no numbers"
        require(self.dtype.kind in "biufcU" and self.dtype.itemsize > 0, f"it holds {kind}")
        checked_shape(self.shape, self.dtype, stored, "its array")

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def _mapped(path: Path, start: int, header: _Header) -> np.memmap:
    """An array in the file whose header begins at `start`."""
    room = path.stat().st_size - start - header.length
    header.check(room)
    require(header.bytes <= room, f"it is cut short: its header asks for {header.bytes} bytes, {room} are there")
    return np.memmap(path, header.dtype, "r", start + header.length, header.shape, header.order)  # type: ignore[call-overload]


class _Archive:
    """The arrays of an .npz by their names; no name is taken for that of a file."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, scratch: Scratch) -> None:
        self.path, self.archive, self.scratch = path, archive, scratch
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        require(0 < len(members) <= MOST_ARRAYS, f"it holds {len(members)} arrays; 1 to {MOST_ARRAYS} are accepted")
        self.members = {info.filename.removesuffix(".npy"): info for info in members}

    def read(self, key: str | None) -> Raw:
        found = diffraction(
            {name: self.header(name).shape for name in self.members}, lambda name: self.header(name).dtype, key
        )
        if found is not None:
            alpha = None if found.alpha is None else Stored(self.numbers(found.alpha))
            raw = Raw(None, family="numpy")
            return found.raw(raw, Stored(self.array(found.measured)), Stored(self.array(found.masks)), alpha)
        axes = self.axes()
        way = along_trajectory({name: self.header(name).shape for name in self.members}, key)
        if way is not None:
            own = {way.measured: axes}
            raw = way.raw(Raw(None, "numpy"), lambda name: Stored(self.array(name), own.get(name)))
            raw.maps, raw.noise = self.optional(MAPS), self.optional(NOISE)
            return raw
        if key is None and all(name.lower() in BESIDE for name in self.members):
            raw = Raw(None, family="numpy")
        else:
            raw = _understood(Stored(self.array(self.measured(key)), axes))
        raw.maps, raw.mask, raw.noise = self.optional(MAPS), self.optional(MASK) or raw.mask, self.optional(NOISE)
        return raw

    def measured(self, key: str | None) -> str:
        known = ", ".join(map(repr, list(self.members)[:10]))
        require(key is None or key in self.members, f"it has no array {key!r}; it has {known}")
        others = [name for name in self.members if name.lower() not in BESIDE]
        found = key or self.named(MEASURED)
        if found is None and len(others) > 1:
            others = [name for name in others if self.header(name).dtype.kind == "c"]
        require(found is not None or len(others) == 1, f"which of its arrays is k-space? Name one as the key: {known}")
        return found or others[0]

    def named(self, names: Iterable[str]) -> str | None:
        lower = {name.lower(): name for name in self.members}
        return next((lower[name] for name in names if name in lower), None)

    def optional(self, names: Iterable[str]) -> Stored | None:
        name = self.named(names)
        return None if name is None else Stored(self.array(name))

    def axes(self) -> tuple[str, ...] | None:
        if "axes" not in self.members:
            return None
        header = self.header("axes")
        told = header.dtype.kind == "U" and len(header.shape) == 1 and header.bytes <= LONGEST_NAMES
        require(told, "its array 'axes' is no list of names")
        axes = tuple(map(str, self.array("axes")))
        require(len(set(axes)) == len(axes), f"its array 'axes' names one twice: {axes}")
        return axes

    def header(self, name: str) -> _Header:
        with self.archive.open(self.members[name]) as stream:
            return _Header.of(stream)

    def array(self, name: str) -> np.ndarray:
        info = self.members[name]
        with self.archive.open(info) as stream:
            header = _Header.of(stream)
            if info.compress_type == zipfile.ZIP_STORED:
                return _mapped(self.path, self.start(info), header)
            require(info.compress_type == zipfile.ZIP_DEFLATED, f"{name!r} is packed in a way that NumPy does not use")
            header.check(min(info.compress_size, self.path.stat().st_size))
            require(
                header.bytes == info.file_size - header.length,
                f"the header of {name!r} asks for {header.bytes} bytes, it unpacks to {info.file_size - header.length}",
            )
            return unpacked(stream, self.scratch, header.shape, header.dtype, header.order)

    def numbers(self, name: str) -> np.ndarray:
        """A few numbers, or a single one."""
        header = self.header(name)
        if header.shape != ():
            return self.array(name)
        require(header.dtype.kind in "iuf", f"{name!r} holds {header.dtype}, where a number is needed")
        with self.archive.open(self.members[name]) as stream:
            return npy.read_array(stream, allow_pickle=False).reshape(1)

    def start(self, info: zipfile.ZipInfo) -> int:
        """Where a member begins: the lengths of what stands in front of it are told only there."""
        with self.path.open("rb") as file:
            file.seek(info.header_offset + 26)
            name, extra = struct.unpack("<HH", file.read(4))
        return info.header_offset + 30 + name + extra
