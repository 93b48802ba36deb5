"""Benchmark results: rows that are on disk as soon as they are known, and a table to look at."""

from __future__ import annotations

import platform
import shlex
import sys
from pathlib import Path
from typing import Any

import deepinv
import torch
from rich.console import Console
from rich.table import Table

from .. import __version__
from ..errors import require
from ..io.files import writable_folder, write_json

COLUMNS = ("psnr", "ssim", "iterations", "seconds")


class Results:
    """One row per dataset × setting × method, means over images; what is finished survives an interruption."""

    def __init__(self, path: Path | None, seed: int) -> None:
        self.path = path
        if path is not None:
            require(not path.is_dir(), f"{path} is a folder; results go to a file")
            writable_folder(path.parent)
        self.content: dict[str, Any] = {
            "command": shlex.join(["pnpilot", *sys.argv[1:]]),
            "seed": seed,
            "versions": {
                "pnpilot": __version__,
                "torch": torch.__version__,
                "deepinv": deepinv.__version__,
                "python": platform.python_version(),
            },
            "rows": [],
            "images": [],
        }

    def add(
        self, dataset: str, setting: str, method: str, images: list[dict[str, Any]], **extra: Any
    ) -> dict[str, Any]:
        """Enter a method's per-image scores and write all there is."""
        labels = {"dataset": dataset, "setting": setting, "method": method}
        means = {name: round(sum(image[name] for image in images) / len(images), 4) for name in COLUMNS}
        self.content["rows"].append({**labels, **means, **extra})
        self.content["images"] += [
            {**labels, **{key: _short(value) for key, value in image.items()}} for image in images
        ]
        if self.path is not None:
            write_json(self.path, self.content)
        return self.content["rows"][-1]

    def show(self, console: Console) -> None:
        """Print the table, if there is any."""
        if not self.content["rows"]:
            return
        table = Table(box=None, header_style="bold")
        for name in ("dataset", "setting", "method"):
            table.add_column(name)
        for name in COLUMNS:
            table.add_column(name, justify="right")
        last = None
        for row in self.content["rows"]:
            group = (row["dataset"], row["setting"])
            if last not in (None, group):
                table.add_section()
            last = group
            numbers = (f"{row['psnr']:.2f}", f"{row['ssim']:.4f}", f"{row['iterations']:.1f}", f"{row['seconds']:.3f}")
            table.add_row(*group, row["method"], *numbers)
        console.print(table)


def _short(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value
