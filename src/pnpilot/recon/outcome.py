"""What is heard while files are reconstructed, and what became of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..report import Content


class Watch:
    """Hears how a file is getting on. This one says nothing."""

    def begin(self, file: Path, images: int, done: int) -> None:
        """A file was understood; some of its images may be there from before."""

    def tick(self, images: float) -> None:
        """So much of the work is done, in images."""

    def say(self, sentence: str) -> None:
        """Something a user should know."""


@dataclass(frozen=True)
class Outcome:
    """What became of a file."""

    file: Path
    written: list[Path]
    report: Content | None = None
    """None if it could not be reconstructed."""
    error: str = ""
    again: bool = False
    """Whether it was there from before."""
