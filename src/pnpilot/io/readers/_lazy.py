"""What several readers need to leave large arrays outside the memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...errors import require
from ..raw import Scratch

CHUNK = 2**22


class Stream(Protocol):
    """A file being unpacked."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, as many at most."""
        ...


def unpacked(stream: Stream, scratch: Scratch, shape: tuple[int, ...], dtype: np.dtype, order: Any) -> np.ndarray:
    """An array whose numbers follow in a stream, copied to the scratch folder a chunk at a time."""
    array = scratch.array((math.prod(shape),), dtype)
    room, at = array.view(np.uint8), 0
    while at < room.size:
        chunk = stream.read(min(CHUNK, room.size - at))
        require(
            len(chunk) > 0, f"it is cut short: it unpacks to {at} bytes of numbers, its header asks for {room.size}"
        )
        room[at : at + len(chunk)] = np.frombuffer(chunk, np.uint8)
        at += len(chunk)
    stream.read(1)  # at its end, a stream holds what came out of it against its checksum
    return array.reshape(shape, order=order)


@dataclass(frozen=True)
class Scaled:
    """Numbers of a file times a slope plus an intercept, worked out for the parts that are asked for."""

    data: np.ndarray
    slope: float
    intercept: float
    dtype = np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of every axis."""
        return self.data.shape

    def __getitem__(self, index: Any) -> np.ndarray:
        with np.errstate(all="ignore"):  # what overflows is infinite, and is told where images are checked
            return (self.data[index] * np.float64(self.slope) + self.intercept).astype(self.dtype)


def without_names(key: str | None) -> None:
    """Refuse the name of an array, for formats that hold but one."""
    require(key is None, f"it holds one array, which has no name; {key!r} was asked for")
