"""What a reader gives: arrays that stay in the file until a part is asked for, with the names of their axes."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from ..errors import BadInput, require
from .files import reserve, writing
from .geometry import Geometry

COIL, AVERAGE, SET, PART, SLICE = "coil", "average", "set", "part", "slice"
"""Receivers; repeats to be averaged; sets of coil maps; real and imaginary part, as an axis of two; slices in space."""
COLOUR = "colour"
"""Red, green and blue of pictures, as an axis of three."""
MASK_AXIS = "mask"
"""The phase masks of coded diffraction, all of which see the image."""
SPACE = ("z", "y", "x")
"""Axes of k-space. `x` is the readout, where a format knows it; `z` is there for volumes that were encoded in three."""
NOT_IMAGES = frozenset({COIL, AVERAGE, SET, PART, COLOUR, MASK_AXIS, *SPACE})
"""Every other name (slice, time, contrast, …) counts separate images."""


class Lazy(Protocol):
    """What an array in a file can do: NumPy's arrays and memory maps, and h5py's datasets."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of every axis."""
        ...

    @property
    def dtype(self) -> np.dtype:
        """The type of its numbers."""
        ...

    def __getitem__(self, index: Any) -> Any:
        """A part, by numbers and slices without steps."""
        ...


@dataclass(frozen=True)
class Stored:
    """An array in a file."""

    data: Lazy
    axes: tuple[str, ...] | None = None
    """The name of each axis, or None where the format does not tell."""

    def __post_init__(self) -> None:
        if self.axes is not None and len(self.axes) != len(self.data.shape):
            raise ValueError(f"{len(self.axes)} names for the axes of an array {self.data.shape}")
        if self.axes is not None and len(set(self.axes)) < len(self.axes):
            raise BadInput(f"two axes of an array have one name: {', '.join(self.axes)}")


@dataclass
class Raw:
    """What a file holds. Readers fill in what they find; nothing here is larger than a few slices in memory."""

    measured: Stored | None
    """k-space, centred: the zero frequency of each axis of length n is at n // 2. Or pictures, if it is not complex."""
    family: str
    """The writer that is taken where none is asked for."""
    kind: str = "cartesian"
    """What was measured: the name of the modality that understands it."""
    beside: dict[str, Stored] = field(default_factory=dict)
    """Arrays that go with `measured`, by name: the angles of a tomogram, the trajectory of a spiral."""
    pictures: bool = False
    """Whether `measured` are magnitude images, from which a measurement can only be simulated."""
    maps: Stored | None = None
    """Coil maps, in image space."""
    mask: Stored | None = None
    """Which samples were measured; by default those that are not zero."""
    noise: Stored | None = None
    """A scan of noise alone (coil, sample)."""
    calibration: Stored | None = None
    """k-space of a separate calibration scan, in the axes of `measured`, zero where it has no samples."""
    geometry: Geometry | None = None
    """That of the final images: after oversampling was cut off, and at the size that was asked for."""
    matrix: dict[str, int] = field(default_factory=dict)
    """How many pixels of an axis of space the final images have, where that is less than what was encoded."""
    oversampled: str | None = None
    """The axis of space along which more was read out than is wanted; `matrix` has its final length."""
    header: Any = None
    """What the format's library says of the file, for the writer of the same family: a pydicom dataset, for one."""
    reader: str = ""
    """The name of the reader, filled in by whoever asked it."""
    notes: list[str] = field(default_factory=list)
    """What a user should know about how the file was understood."""
    closes: Callable[[], Any] = lambda: None
    """Lets go of the file."""

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.closes()


@dataclass(frozen=True)
class Scratch:
    """A folder for arrays that are too large for the memory; whoever made it deletes it."""

    folder: Path

    def array(self, shape: tuple[int, ...], dtype: Any = np.complex64) -> np.memmap:
        """Zeros of this shape, on disk; refused if the disk has no room for them."""
        import shutil

        needed = math.prod(shape) * np.dtype(dtype).itemsize
        with writing(f"to the folder {self.folder}"):
            self.folder.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(self.folder).free
            require(
                needed < 0.9 * free, f"{needed / 1e9:.3g} GB are needed in {self.folder}, {free / 1e9:.3g} are free"
            )
            with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".scratch", delete=False) as file:
                file.truncate(max(needed, 1))
            reserve(Path(file.name), needed)
            return np.memmap(file.name, dtype, "r+", shape=shape)


PACKED = 1100
"""No compression here packs numbers more densely than 1032 to one."""
MOST_BYTES = 2**40
MOST_AXES = 16


def checked_shape(shape: tuple[int, ...], dtype: np.dtype, stored: int, what: str) -> None:
    """Refuse an array that claims more than its `stored` bytes can hold, before anything is allocated for it."""
    require(0 < len(shape) <= MOST_AXES, f"{what} has {len(shape)} axes")
    require(min(shape) > 0, f"{what} is empty: its shape is {tuple(shape)}")
    claimed = math.prod(map(int, shape)) * dtype.itemsize
    if claimed > min(MOST_BYTES, PACKED * max(stored, 1)):
        told = f"{claimed:.3g}" if claimed < 1e300 else "more than 1e+300"
        raise BadInput(f"{what} claims {told} bytes, and the file holds {stored} for it")
