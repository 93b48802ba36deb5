"""What a writer is: finished images, read one after the other, become a file that appears whole or not at all."""

from __future__ import annotations

import math
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BadInput, first_line, require
from ...registry import Registry
from ..files import writing
from ..geometry import Geometry


@dataclass(frozen=True)
class Volume:
    """Images of one file: complex, all of one size, each read only when it is asked for."""

    shape: tuple[int, ...]
    """The lengths of `axes`: those that count images, if there are any, then rows and columns."""
    axes: tuple[str, ...]
    """For example ("contrast", "slice", "y", "x"). The last two are the rows and columns of an image."""
    image: Callable[[int], np.ndarray]
    """The image of a number, complex64 (rows, columns). They are counted with the last of those axes the fastest."""
    geometry: Geometry | None = None
    header: Any = None
    """What the file was read from says of itself, in the words of the format's library; None if it is of another."""
    about: str = ""
    """One line on how the images came about, for formats with a place for it."""
    simulated: bool = False
    """Whether the measurement was made up: formats that go to archives of patients must say so."""
    colours: bool = False
    """Whether images have three colours (3, rows, columns), which `shape` and `axes` do not count."""
    pixels: np.dtype | None = None
    """Of pictures whose results are pictures again: the type of their numbers. Their images are real."""

    def __len__(self) -> int:
        return math.prod(self.shape[:-2])

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self.image(number) for number in range(len(self)))

    def apart(self) -> Volume:
        """The same with colours as images, for formats that know none."""
        if not self.colours:
            return self
        shape, axes = ((*own[:-2], one, *own[-2:]) for own, one in ((self.shape, 3), (self.axes, "colour")))
        return replace(self, shape=shape, axes=axes, image=lambda n: self.image(n // 3)[n % 3], colours=False)

    def seen(self, image: np.ndarray) -> np.ndarray:
        """An image in real numbers: of pictures as it is, and rounded to their type; of others the magnitude."""
        if self.pixels is None:
            return np.abs(image)
        if self.pixels.kind not in "ui":
            return image.real.astype(np.float32)
        bounds = np.iinfo(self.pixels)
        return image.real.astype(np.float64).round().clip(bounds.min, bounds.max).astype(self.pixels)

    def largest(self) -> float:
        """The largest magnitude of all images."""
        return max(float(np.abs(image).max()) for image in self)


class Writer(ABC):
    """Base of all writers. The first line of the docstring says what is written."""

    name: str
    suffix: str
    """How the file's name ends."""
    holds: str
    """What is kept: "complex" or "magnitude", and whether the geometry is."""
    extra: str | None = None
    """The optional dependencies of the package that it needs."""
    colours: bool = False
    """Whether images in colour stay together; otherwise each colour is written as an image."""
    folders: bool = False
    """Whether several images become a folder of numbered files."""

    @classmethod
    def folder(cls, name: str) -> str:
        """What that folder is called; several formats may be written side by side."""
        return f"{name}_{cls.suffix.lstrip('.')}"

    @abstractmethod
    def write(self, folder: Path, name: str, volume: Volume) -> list[Path]:
        """Write files (or one folder of files), whose names begin with `name`, and name them.

        `folder` is empty and nobody looks into it. No more than a few images may be in memory at a time.
        """


WRITERS: Registry[Writer] = Registry("writer", __package__)


def writer_named(text: str) -> str:
    """The name of a writer, by that or by how its files end: "npy" is "numpy"."""
    for name in WRITERS:
        endings = WRITERS[name].suffix.split(".")
        if text == name or text.removeprefix(".") in endings[1:2]:
            return name
    WRITERS[text]
    raise AssertionError


def save(form: str, folder: Path, name: str, volume: Volume, workplace: Path | None = None) -> list[Path]:
    """Write the volume in the format of that name; files that are there already are replaced.

    `workplace` is a folder on the same disk for what is not finished; by default the folder itself.
    """
    writer = WRITERS[form]()
    volume = volume if writer.colours else volume.apart()
    check_replaceable(form, folder, name, len(volume))
    with (
        writing(f"to the folder {folder}"),
        tempfile.TemporaryDirectory(prefix=".pnpilot-", dir=workplace or folder) as temporary,
    ):
        new, old = Path(temporary, "new"), Path(temporary, "old")
        new.mkdir()
        old.mkdir()
        try:
            made = writer.write(new, name, replace(volume, image=_readable(volume.image, name)))
        except ImportError as error:
            raise BadInput(f"{error.name or first_line(error)} writes {form}: pip install 'pnpilot[mri]'") from error
        return [_moved(path, folder / path.name, old) for path in made]


def _readable(image: Callable[[int], np.ndarray], name: str) -> Callable[[int], np.ndarray]:
    """The same images; a disk that fails as they are read is not taken for one that cannot be written to."""

    def read(number: int) -> np.ndarray:
        try:
            return image(number)
        except OSError as error:
            raise BadInput(f"image {number} of {name} cannot be read: {error.strerror or first_line(error)}") from error

    return read


def check_replaceable(form: str, folder: Path, name: str, images: int) -> None:
    """Refuse to replace a folder that holds anything but numbered files of this format: it may be a user's own."""
    writer = WRITERS[form]
    target = folder / writer.folder(name)
    if writer.folders and images > 1 and target.is_dir():
        with writing(target):
            strange = [path.name for path in target.iterdir() if not _numbered(path, writer.suffix)]
        held = ", ".join(sorted(strange)[:1])
        require(not strange, f"{target} would be replaced, and holds {held}: move it away, or choose another --out")


def _numbered(path: Path, suffix: str) -> bool:
    return path.suffix == suffix and path.stem.isdigit() and path.is_file()


def _moved(path: Path, target: Path, old: Path) -> Path:
    if path.is_dir() and target.is_dir():
        target.replace(old / target.name)
    return path.replace(target)
