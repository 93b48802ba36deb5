"""What is finished of a file, kept on disk image by image: whatever ends the program, none of it is done again."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..io.files import read_json, writable_folder, write_atomically, write_json
from ..io.raw import Scratch
from .stream import Finished

ORDER = "order.json"


class Journal:
    """A folder beside the results, which is deleted when they are written."""

    def __init__(self, folder: Path, order: Mapping[str, Any]) -> None:
        """`order` is what was asked for: what is there is used only if it was for the same."""
        self.folder = folder
        order = json.loads(json.dumps(order))
        if folder.is_dir() and _read(folder / ORDER) != order:
            shutil.rmtree(folder)
        writable_folder(folder)
        self._tidy()  # after a run that was killed
        write_json(folder / ORDER, order)
        self.scratch = Scratch(folder)
        self.done = {int(path.stem) for path in folder.glob("*.npz") if path.stem.isdecimal()}

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

    def rest(self) -> None:
        """Keep what is finished and nothing else."""
        if self.done:
            self._tidy()
        else:
            self.close()

    def _tidy(self) -> None:
        for path in self.folder.iterdir():
            if path.suffix != ".npz" and path.name != ORDER:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}.npz"

    def _part(self, number: int, name: str) -> np.ndarray:
        with np.load(self._path(number), allow_pickle=False) as parts:
            return np.asarray(parts[name])


def _fits(image: np.ndarray) -> bool:
    return bool(1e-3 < np.abs(image).max(initial=0) < 6e4)


def _read(path: Path) -> Any:
    with contextlib.suppress(Exception):
        return read_json(path)
    return None
