"""Benchmark results in pieces: one file per cell, image by image, so that any number of runs fill one table."""

from __future__ import annotations

import json
import platform
import re
import shlex
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import deepinv
import torch
from torch import Tensor

from .. import __version__
from ..io.files import writable_folder, write_json
from .data import SIZE

SCORES = ("psnr", "ssim", "iterations", "seconds")


@dataclass(frozen=True)
class Cell:
    """A test set in a setting, reconstructed by a method."""

    dataset: str
    setting: str
    method: str
    seed: int = 0
    size: tuple[int, int] = SIZE
    draw: int | None = None

    @property
    def file(self) -> str:
        """A name for its file."""
        height, width = self.size
        words = f"{self.dataset} {height}x{width} {self.setting} {self.method} seed={self.seed}"
        words += "" if self.draw is None else f" draw={self.draw}"
        return re.sub(r"[^\w.=+-]+", "_", words) + ".json"


@dataclass
class Cells:
    """The folder that holds them."""

    folder: Path
    command: str = field(default_factory=lambda: shlex.join(["pnpilot", *sys.argv[1:]]))

    def __post_init__(self) -> None:
        writable_folder(self.folder)

    def read(self, cell: Cell, made_with: Any) -> dict[str, dict[str, Any]]:
        """Scores by image as far as they are known; none if they were made with something else."""
        try:
            content = json.loads((self.folder / cell.file).read_text())
            return content["images"] if content["made_with"] == _plain(made_with) else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def write(self, cell: Cell, made_with: Any, images: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep what is known of a cell, with what another run may have found of it meanwhile."""
        images = {**self.read(cell, made_with), **images}
        versions = {"pnpilot": __version__, "torch": torch.__version__, "deepinv": deepinv.__version__}
        content = {
            "dataset": cell.dataset,
            "setting": cell.setting,
            "method": cell.method,
            "seed": cell.seed,
            "size": cell.size,
            "draw": cell.draw,
            "command": self.command,
            "versions": {**versions, "python": platform.python_version()},
            "made_with": made_with,
            "images": images,
        }
        write_json(self.folder / cell.file, content)


def checksum(image: Tensor) -> int:
    """Tells one image from another of the same name."""
    return zlib.crc32(image.cpu().numpy().tobytes())


def means(images: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each score."""
    return {name: round(sum(image[name] for image in images) / len(images), 4) for name in SCORES}


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))
