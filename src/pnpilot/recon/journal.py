"""What is finished of a file, kept on disk image by image: whatever ends the program, none of it is done again."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CannotWrite
from ..io.files import read_json, writable_folder, write_atomically, write_json
from ..io.raw import Scratch
from .stream import Finished

ORDER = "order.json"
PARTS = ("image", "record", "start", "objection")


class Journal:
    """A folder beside the results, which is deleted when they are written."""

    def __init__(self, folder: Path, order: Mapping[str, Any]) -> None:
        """`order` is what was asked for: what is there is used only if it was for the same."""
        self.folder = folder
        order = json.loads(json.dumps(order))
        self._lock = _alone(writable_folder(folder))
        before = _read(folder / ORDER)
        self.begun = before is not None and any(folder.glob("*.npz"))
        """Whether there was a run, of this order or another, that had passed all checks."""
        if before != order:
            _emptied(folder)
        self.done = {int(path.stem) for path in folder.glob("*.npz") if path.stem.isdecimal() and _whole(path)}
        self._tidy()  # after a run that was killed
        write_json(folder / ORDER, order)
        self.scratch = Scratch(folder)

    def keep(self, finished: Finished) -> None:
        """Write an image down."""
        buffer = io.BytesIO()
        record = np.frombuffer(json.dumps(finished.record).encode(), np.uint8)
        np.savez(
            buffer,
            image=finished.image.astype(np.complex64),
            record=record,
            start=np.abs(finished.start).astype(np.float16 if _fits(finished.start) else np.float32),
            objection=finished.objection.astype(np.float16),
        )
        write_atomically(self._path(finished.number), buffer.getvalue())
        self.done.add(finished.number)

    def image(self, number: int) -> np.ndarray:
        """A finished image."""
        return self._part(number, "image")

    def record(self, number: int) -> dict[str, Any]:
        """What there is to say of it."""
        found: dict[str, Any] = json.loads(self._part(number, "record").tobytes())
        return found

    def pictures(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Its start, itself, and what the data object to."""
        return self._part(number, "start"), self.image(number), self._part(number, "objection")

    def close(self) -> None:
        """Everything is written elsewhere."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._release()

    def rest(self) -> None:
        """Keep what is finished and nothing else."""
        if self.done:
            with contextlib.suppress(OSError):  # somebody deleted the folder meanwhile
                self._tidy()
            self._release()
        else:
            self.close()

    def _tidy(self) -> None:
        _emptied(self.folder, {ORDER, *(self._path(number).name for number in self.done)})

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}.npz"

    def _part(self, number: int, name: str) -> np.ndarray:
        with np.load(self._path(number), allow_pickle=False) as parts:
            return np.asarray(parts[name])


def _fits(image: np.ndarray) -> bool:
    return bool(1e-3 < np.abs(image).max(initial=0) < 6e4)


def _alone(folder: Path) -> int | None:
    """Hold the folder as long as this process works there: two runs would throw away each other's files."""
    try:
        import fcntl
    except ImportError:  # a system without it
        return None
    try:
        lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise CannotWrite(f"another run is at work in {folder}: wait for it, or choose another --out") from error
    except OSError:  # a disk without it
        return None
    return lock


def _emptied(folder: Path, kept: Collection[str] = ()) -> None:
    for path in folder.iterdir():
        if path.name not in kept:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _whole(path: Path) -> bool:
    """Whether a disk that failed, or somebody, did no harm to an image."""
    with contextlib.suppress(Exception), path.open("rb") as file, np.load(file, allow_pickle=False) as parts:
        return all(parts[name].size > 0 for name in PARTS)
    return False


def _read(path: Path) -> Any:
    with contextlib.suppress(Exception):
        return read_json(path)
    return None
