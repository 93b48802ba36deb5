"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from ..errors import BadInput, require


def writable_folder(folder: Path, needed: int = 0) -> Path:
    """Create the folder and prove that it takes files, and has room for `needed` bytes, before any work is spent."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadInput(f"cannot write to the folder {folder}: {error.strerror}") from error
    free = shutil.disk_usage(folder).free
    require(free >= needed, f"the disk of {folder} is full: {free / 1e6:.0f} MB free, {needed / 1e6:.0f} MB needed")
    return folder


def writable_file(path: Path) -> Path:
    """Prove that a file can be written there, before any work is spent on it."""
    require(not path.is_dir(), f"{path} is a folder; results go to a file")
    writable_folder(path.parent)
    return path


def write_atomically(path: Path, data: bytes) -> None:
    """Write beside the target, then rename: a reader never sees half a file."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def write_json(path: Path, content: Any) -> None:
    """Write JSON for people and programs."""
    write_atomically(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())
