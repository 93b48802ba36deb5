"""Results of the table of operators: a line for each, a column for each method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .report import FORMS, STYLES, distinct, marks, number
from .results import Results
from .scores import summary


class OperatorResults(Results):
    """Rows of operators; the best of a line is bold, the second best underlined, what does not apply a dash."""

    def __init__(self, path: Path | None, columns: Sequence[str]) -> None:
        super().__init__(path, seed=0)
        self.columns = columns

    def add_images(
        self,
        operator: str,
        method: str,
        images: Sequence[Mapping[str, Any]],
        printed: Mapping[str, float],
        **extra: Any,
    ) -> None:
        """Enter a row for each image that others printed a number for; `printed` has theirs, if by this method."""
        for image in images:
            labels = {"setting": f"{operator} {image['image']}", "method": method, "paper": printed.get(image["image"])}
            self.rows.append({**labels, **summary([image]), **extra})

    def show(self, console: Console) -> None:
        """Print the table, with a section for each group, and published numbers last."""
        if not self.rows:
            return
        table = Table(box=None, header_style="bold")
        printed = [name for name in self.columns if any(row["paper"] is not None for row in self.of(name))]
        table.add_column("PSNR in dB", no_wrap=True)
        for name in (*self.columns, *(f"{name} †" for name in printed)):
            table.add_column(name, justify="right", overflow="fold")
        group = None
        for operator in distinct(self.rows, "setting"):
            own = {row["method"]: row for row in self.rows if row["setting"] == operator}
            if group not in (None, next(iter(own.values()))["group"]):
                table.add_section()
            group = next(iter(own.values()))["group"]
            values = [own[name]["psnr"] if name in own else None for name in self.columns]
            places = marks(values, FORMS["psnr"])
            found = [
                Text(number(value, "psnr") or "–", STYLES[place]) for value, place in zip(values, places, strict=True)
            ]
            paper = [number(own.get(name, {}).get("paper"), "psnr") for name in printed]
            table.add_row(Text(operator), *found, *paper)
        console.print(table)
        if printed:
            console.print("† as published, with the denoiser of its authors")

    def of(self, method: str) -> list[dict[str, object]]:
        """The rows of a method."""
        return [row for row in self.rows if row["method"] == method]
