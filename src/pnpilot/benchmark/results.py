"""Results of a benchmark: the command and versions, rows, written as soon as they are known, and scores by image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from ..io.files import writable_json, write_json
from ..provenance import header
from .report import show
from .scores import rounded, summary


class Results:
    """One row per dataset, setting and method, means over images; what is finished survives an interruption."""

    def __init__(self, path: Path | None, seed: int, seeds: int = 1, draws: int | None = None) -> None:
        self.path = path
        if path is not None:
            writable_json(path)
        told = {"seed": seed, "seeds": seeds, "draws": draws}
        self.content: dict[str, Any] = {**header(), **told, "rows": [], "images": []}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows so far."""
        return self.content["rows"]

    def add(
        self,
        dataset: str,
        setting: str,
        method: str,
        images: Sequence[Mapping[str, Any]],
        paper: float | None = None,
        **extra: Any,
    ) -> dict[str, Any]:
        """Enter a method's scores, image by image, beside the paper's PSNR, and write the file."""
        labels = {"dataset": dataset, "setting": setting, "method": method}
        self.rows.append({**labels, **summary(images), "paper": paper, **extra})
        self.content["images"] += [{**labels, **rounded(image)} for image in images]
        if self.path is not None:
            write_json(self.path, self.content)
        return self.rows[-1]

    def show(self, console: Console) -> None:
        """Print the table, if there is any."""
        if self.rows:
            show(self.rows, console)
