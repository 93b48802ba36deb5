"""The report of a run: one HTML page that needs nothing but itself, and the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..io.files import write_atomically, write_json
from .content import Content, ImageReport, Prepared, Read, plain
from .page import page
from .pictures import curves, panels
from .table import with_curves

__all__ = ["Content", "ImageReport", "Prepared", "Read", "curves", "page", "panels", "write_report"]


def write_report(folder: Path, name: str, content: Content, pictures: Sequence[tuple[str, bytes]]) -> list[Path]:
    """Write NAME.json and NAME.html; pictures are PNG files with their captions, the most telling one first."""
    told = plain(content)
    drawn = with_curves(told["images"])
    files = [folder / f"{name}.json", folder / f"{name}.html"]
    write_json(files[0], told)
    write_atomically(files[1], page(told, pictures, curves(drawn) if drawn else None).encode())
    return files
