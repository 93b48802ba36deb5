"""One live progress line on a terminal, plain lines in a log."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class ProgressLine:
    """Shows the share of a wall-clock budget that is spent, with a few words beside it."""

    def __init__(self, title: str, *, quiet: bool = False) -> None:
        self.console = Console(stderr=True, quiet=quiet)
        self.live = self.console.is_terminal
        self.interval = 0.5 if self.live else 15.0
        self._start = time.monotonic()
        columns = (
            TextColumn(title),
            BarColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[words]}"),
        )
        self._bar = Progress(*columns, console=self.console, disable=not self.live)
        self._task = self._bar.add_task(title, total=1.0, words="")

    def __enter__(self) -> ProgressLine:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, share: float, words: str) -> None:
        """Move the bar."""
        self._bar.update(self._task, completed=share, words=words)
        if not self.live:
            self.say(f"{share:4.0%} {words}")

    def say(self, words: str) -> None:
        """Print a line that stays."""
        self.console.print(
            f"[{time.monotonic() - self._start:6.0f} s] {words}", markup=False, highlight=False, soft_wrap=True
        )
