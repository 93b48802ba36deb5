"""Benchmark results in pieces: one file per cell, image by image, so that any number of runs fill one table."""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import BadInput
from ..io.files import read_json, writable_folder, write_atomically, write_json
from ..provenance import header
from .data import SIZE
from .scores import SCORES


@dataclass(frozen=True)
class Cell:
    """A test set in a setting, reconstructed by a method."""

    dataset: str
    setting: str
    method: str
    seed: int = 0
    size: tuple[int, int] = SIZE
    draw: int | None = None
    channels: int = 1

    @property
    def stem(self) -> str:
        """A name for its files."""
        shape = "x".join(map(str, (*self.size, self.channels) if self.channels != 1 else self.size))
        words = f"{self.dataset} {shape} {self.setting} {self.method} seed={self.seed}"
        words += "" if self.draw is None else f" draw={self.draw}"
        plain = re.sub(r"[^\w.=+-]", "_", words)
        # Labels that differ in their signs alone are told apart by a number.
        return plain if plain == words.replace(" ", "_") else f"{plain}_{zlib.crc32(words.encode()):08x}"

    @property
    def file(self) -> str:
        """The name of the file with its scores."""
        return self.stem + ".json"


@dataclass
class Cells:
    """The folder that holds the cells, and a few reconstructions to look at."""

    folder: Path

    def __post_init__(self) -> None:
        writable_folder(self.folder)

    def read(self, cell: Cell, made_with: Any) -> dict[str, dict[str, Any]]:
        """The known scores by image; none if they were made with something else."""
        try:
            content = read_json(self.folder / cell.file)
            images = content["images"] if content["made_with"] == json.loads(json.dumps(made_with)) else {}
            return {name: own for name, own in images.items() if _whole(own)}
        except (BadInput, KeyError, TypeError, AttributeError):  # not there, or damaged
            return {}

    def write(self, cell: Cell, made_with: Any, images: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep the scores of a cell, together with those that another run may have added meanwhile."""
        images = {**self.read(cell, made_with), **images}
        write_json(self.folder / cell.file, {**asdict(cell), **header(), "made_with": made_with, "images": images})

    def picture(self, cell: Cell, made_with: Any, identity: Any) -> Tensor | None:
        """The reconstruction (C, H, W) of an image, if it was kept and made with the same things."""
        try:
            return torch.from_numpy(np.load(self._picture_file(cell, made_with, identity), allow_pickle=False))
        except (OSError, ValueError, EOFError, TypeError):
            return None

    def keep_picture(self, cell: Cell, made_with: Any, identity: Any, image: Tensor) -> None:
        """Keep the reconstruction (C, H, W) of an image."""
        content = io.BytesIO()
        np.save(content, image.cpu().numpy(), allow_pickle=False)
        write_atomically(self._picture_file(cell, made_with, identity), content.getvalue())

    def _picture_file(self, cell: Cell, made_with: Any, identity: Any) -> Path:
        """What it was made from and with is part of its name: a picture of something else is not found."""
        key = zlib.crc32(json.dumps([made_with, identity]).encode())
        return self.folder / f"{cell.stem}_{key:08x}.npy"


def _whole(scores: Any) -> bool:
    return isinstance(scores, dict) and all(isinstance(scores.get(name), int | float) for name in SCORES)


def fingerprint(data: Tensor) -> str:
    """Tells measurements of one image apart, whatever made them differ; rounding on another machine does not."""
    values = torch.view_as_real(data) if data.is_complex() else data
    values = values.flatten().cpu().double()
    probe = torch.randn(len(values), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    norm = values.norm()
    return f"{norm:.3e} {(values @ probe / norm.clamp_min(1e-300)).item():.3f}"


def checksum(image: Tensor) -> int:
    """Tells one image from another of the same name."""
    return zlib.crc32(image.cpu().numpy().tobytes())
