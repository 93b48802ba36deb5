"""What a reader is: it knows files of its format, and gives what they hold without loading it."""

from __future__ import annotations

import contextlib
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from ...errors import BadInput, PnPilotError, first_line, require
from ...registry import Registry
from ..raw import Raw, Scratch
from . import _trial

HEAD = 4096
"""Bytes from the beginning of a file that a reader is shown."""


class Reader(ABC):
    """Base of all readers. The first line of the docstring says what is read; the attributes say the rest for docs."""

    name: str
    suffixes: tuple[str, ...]
    """How names of such files end, in lower case."""
    known_by: str
    """How it knows a file as its own."""
    shape: str
    """Which axes it finds, and in which order."""
    units: str
    """What a number in the file means."""
    extra: str | None = None
    """The optional dependencies of the package that it needs, as in `pip install 'pnpilot[mri]'`."""

    @classmethod
    def knows(cls, path: Path, head: bytes) -> bool:  # noqa: ARG003
        """Whether a file is of this format, by its name and its first bytes; must not raise, whatever they are."""
        return path.name.lower().endswith(cls.suffixes)

    @classmethod
    def fragile(cls, head: bytes) -> bool:  # noqa: ARG003
        """Whether the library behind it may crash or hang on a damaged file that begins like this.

        Such a file is first tried in a process of its own, before any reader is asked whether it knows it. That process
        finds the readers of the package and those that `--with` names.
        """
        return False

    @abstractmethod
    def read(self, path: Path, scratch: Scratch, key: str | None = None) -> Raw:
        """Open the file. `key` names the array that is meant, where a file may hold several.

        Refuses, before anything large is allocated, what cannot be right; the message need not name the file.
        """

    def risk(self, path: Path, scratch: Scratch, key: str | None = None) -> None:
        """What such a trial does: whatever of `read` may crash or hang, and better nothing that takes long besides."""
        self.read(path, scratch, key).closes()


READERS: Registry[Reader] = Registry("reader", __package__)


def open_raw(path: Path, scratch: Scratch, key: str | None = None) -> Raw:
    """What a file holds; every refusal is one line that names the file."""
    with refusals(path):
        _, head = _beginning(path)
        if any(READERS[name].fragile(head) for name in READERS):
            _trial.tried(path, scratch, key)
        reader = reader_of(path)
        raw = reader.read(path, scratch, key)
        raw.reader = reader.name
        return raw


@contextlib.contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong with a file into one line that names it."""
    try:
        yield
    except ImportError as error:
        raise BadInput(f"{path}: {error.name or first_line(error)} is needed: pip install 'pnpilot[mri]'") from error
    except PnPilotError as error:
        told = str(error)
        named = told.startswith(str(path))
        raise BadInput(f"{path}{_printable(told.removeprefix(str(path)) if named else f': {told}')}") from error
    except MemoryError as error:
        raise BadInput(f"{path}: it asks for more memory than there is") from error
    except Exception as error:  # damaged files make libraries raise nearly anything
        raise BadInput(f"{path} cannot be read: {_printable(first_line(error))}") from error


def _printable(message: str) -> str:
    """A message may quote the file, which may hold anything: further lines, or what a terminal obeys."""
    return "".join(letter if letter.isprintable() else "?" for letter in message)


def _beginning(path: Path) -> tuple[Path, bytes]:
    """The file that tells what it is, and how it begins."""
    try:
        kind = path.stat().st_mode
    except OSError as error:
        # A pair of files may go by the name that they share.
        if path.with_name(path.name + ".hdr").is_file():
            kind, path = stat.S_IFREG, path.with_name(path.name + ".hdr")
        else:
            raise BadInput(f"there is no such file ({error.strerror})") from error
    require(not stat.S_ISDIR(kind), "it is a folder; name the files in it")
    require(stat.S_ISREG(kind), "it is a device or a pipe, not a file")
    with path.open("rb") as file:
        head = file.read(HEAD)
    require(len(head) > 0, "it is empty")
    return path, head


def reader_of(path: Path) -> Reader:
    """The reader that knows the file."""
    path, head = _beginning(path)
    for name in READERS:
        if READERS[name].knows(path, head):
            return READERS[name]()
    called = [name for name in READERS if path.name.lower().endswith(READERS[name].suffixes)]
    require(not called, f"by its name it is a {' or '.join(called)} file, but it does not begin like one")
    endings = sorted({suffix for name in READERS for suffix in READERS[name].suffixes})
    raise BadInput(f"no reader knows it; files that are read end in {', '.join(endings)}")
