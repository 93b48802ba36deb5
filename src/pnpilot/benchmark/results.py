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
from ..io.files import writable_file, write_json
from .published import published

COLUMNS = ("psnr", "ssim", "iterations", "seconds")


class Results:
    """One row per dataset × setting × method, means over images; what is finished survives an interruption."""

    def __init__(self, path: Path | None, seed: int, seeds: int = 1) -> None:
        self.path = path
        if path is not None:
            writable_file(path)
        self.content: dict[str, Any] = {
            "command": shlex.join(["pnpilot", *sys.argv[1:]]),
            "seed": seed,
            "seeds": seeds,
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
        if self.content["seeds"] > 1:
            extra = {"spread": _spread(images), **extra}
        if (paper := published(dataset, setting, method)) is not None:
            extra = {"paper": paper, **extra}
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
        also = [name for name in ("spread", "paper") if any(name in row for row in self.content["rows"])]
        for name in (*COLUMNS, *also):
            table.add_column(name, justify="right")
        last = None
        for row in self.content["rows"]:
            group = (row["dataset"], row["setting"])
            if last not in (None, group):
                table.add_section()
            last = group
            numbers = (f"{row['psnr']:.2f}", f"{row['ssim']:.4f}", f"{row['iterations']:.1f}", f"{row['seconds']:.3f}")
            extra = (f"{row[name]:.2f}" if name in row else "" for name in also)
            table.add_row(*group, row["method"], *numbers, *extra)
        console.print(table)


def _spread(images: list[dict[str, Any]]) -> float:
    """How far apart the mean PSNRs of different seeds are: the largest less the smallest."""
    by_seed: dict[int, list[float]] = {}
    for image in images:
        by_seed.setdefault(image["seed"], []).append(image["psnr"])
    means = [sum(values) / len(values) for values in by_seed.values()]
    return round(max(means) - min(means), 4)


def _short(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value
