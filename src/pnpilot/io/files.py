"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import BadInput, CannotWrite, first_line, require

PNG = b"\x89PNG\r\n\x1a\n"
"""How a picture of ours begins."""
LARGEST_JSON = 64_000_000
"""Bytes of a JSON file; a larger one is not ours and is not read."""


@contextlib.contextmanager
def writing(what: object) -> Iterator[None]:
    """Turn a system error on writing (disk full, no permission) into an error of one line."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"cannot write {what}: {error.strerror or first_line(error)}") from error


def writable_folder(folder: Path, needed: int = 0) -> Path:
    """Create the folder and prove that it takes files, and has room for `needed` bytes, before any work is spent."""
    with writing(f"to the folder {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        free = shutil.disk_usage(folder).free
    if free < needed:
        raise CannotWrite(f"the disk of {folder} is full: {free / 1e6:.0f} MB free, {needed / 1e6:.0f} MB needed")
    return folder


def writable_file(path: Path) -> Path:
    """Prove that a file can be written there, before any work is spent on it."""
    with writing(path), contextlib.suppress(FileNotFoundError):
        kind = path.stat().st_mode
        require(not stat.S_ISDIR(kind), f"{path} is a folder; results go to a file")
        require(stat.S_ISREG(kind), f"{path} is a device or a pipe; results go to a file")
    writable_folder(path.parent)
    return path


def writable_json(path: Path) -> Path:
    """Prove that results can be written there, and that nothing but older results or an empty file is replaced."""
    writable_file(path)
    if path.exists() and path.stat().st_size > 0:
        try:
            ours = _is_result(read_json(path))
        except BadInput:
            ours = False
        require(ours, f"{path} holds something else than results of pnpilot; name a new file, or delete this one")
    return path


def writable_picture(path: Path) -> Path:
    """Prove that a picture can be written there, and that nothing but an older picture or an empty file is replaced."""
    writable_file(path)
    if path.exists() and path.stat().st_size > 0:
        with writing(path), path.open("rb") as file:
            ours = file.read(len(PNG)) == PNG
        require(ours, f"{path} holds something else than a picture; name a new file, or delete this one")
    return path


def _is_result(content: Any) -> bool:
    """Whether a command wrote it: results say which command that was, and with which versions."""
    return isinstance(content, dict) and str(content.get("command")).startswith("pnpilot ") and "versions" in content


def read_json(path: Path, what: str = "JSON file", largest: int = LARGEST_JSON) -> Any:
    """What a JSON file holds, if it has no more bytes than `largest`; errors say that it is not `what`."""
    try:
        require(path.is_file(), "there is no such file")
        with path.open("rb") as file:
            data = file.read(largest + 1)
        require(len(data) <= largest, f"it has more than {largest / 1e6:g} MB")
        return json.loads(data)
    except RecursionError as error:
        raise BadInput(f"{path} is not a readable {what}: it is nested too deep") from error
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} is not a readable {what}: {first_line(error)}") from error


def write_atomically(path: Path, data: bytes) -> None:
    """Write beside the target, then rename: a reader never sees half a file, even after a power cut."""
    with writing(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".pnpilot-")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(0o644)
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    _sync_folder(path.parent)


def reserve(path: Path, size: int) -> None:
    """Take the room for a file on its disk now; where none is left later, writing through a map ends the process."""
    with path.open("r+b") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, max(size, 1))
        except AttributeError:
            pass  # a system without it
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # a disk without it
                raise


def _sync_folder(folder: Path) -> None:
    """Flush the new name to disk as well, on systems that can open folders."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_json(path: Path, content: Any) -> None:
    """Write JSON for people and programs."""
    write_atomically(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())
