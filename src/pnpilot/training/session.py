"""The loop of all training: a budget of minutes, checkpoints and exams now and then, and a stop that loses nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch

from ..errors import PnPilotError
from .checkpoint import load_checkpoint, save_checkpoint
from .clock import Clock
from .failures import mendable
from .parallel import agreed
from .progress import ProgressLine
from .signals import StopSignals

EXAM_SHARE = 0.05
"""Exams take at most about this share of the time; on a slow machine there may be none before the end."""
SAVE_EVERY = 60.0
"""Seconds between two checkpoints."""


class Trainee(Protocol):
    """What a session trains."""

    exam_takes: float
    """Estimated seconds of an exam; zero if unknown."""

    def step(self, share: float, done: int) -> None:
        """One step of learning; `share` of the budget is spent, and `done` steps are done."""

    def report(self) -> str:
        """How the latest step went, in a few words."""

    def examine(self) -> str:
        """How it does on held-out images, in a few words."""


class Session:
    """One run in one folder. It resumes from its last checkpoint; `steps` counts those before a stop too."""

    def __init__(
        self,
        line: ProgressLine,
        signals: StopSignals,
        checkpoint: Path,
        parts: dict[str, Any],
        identity: dict[str, Any],
        *,
        unit: str,
        save_every: float,
        leads: bool,
        device: torch.device,
    ) -> None:
        self.line, self.checkpoint, self.unit, self.leads = line, checkpoint, unit, leads
        self.steps, self.spent = 0, 0.0
        self._signals, self._parts, self._identity = signals, parts, identity
        self._save_every, self._device = save_every, device
        self._clock: Clock | None = None  # while it runs

    def resume(self) -> None:
        """Resume from the checkpoint, if there is one."""
        if not self.checkpoint.exists():
            return
        progress = load_checkpoint(self.checkpoint, self._parts, self._identity)
        self.steps, self.spent = progress["steps"], progress["spent"]
        budget = 60 * self._identity["minutes"]
        self.line.say(f"resumed at {self.unit} {self.steps}, {self.spent:.0f} s of {budget:.0f} s spent")

    def run(self, trainee: Trainee) -> None:
        """Train until the budget is spent; refuse a run that made too few steps."""
        clock = self._clock = Clock(self._identity["minutes"], self.spent)
        reports, saves = _Timer(self.line.interval), _Timer(self._save_every)
        exams = _Timer(self._save_every)
        torch.backends.cudnn.benchmark = True  # batches have one or two shapes
        try:
            while (share := agreed(clock.share, self._device)) < 1:
                trainee.step(share, self.steps)
                self.steps += 1
                self.spent = clock.spent
                self._signals.check()
                if not self.leads:
                    continue
                if reports.due():
                    self.line.update(share, f"{self.unit} {self.steps}  {trainee.report()}")
                if saves.due():
                    self.save()
                exams.interval = max(self._save_every, max(exams.took, trainee.exam_takes) / EXAM_SHARE)
                if exams.due():
                    self.line.say(f"{self.unit} {self.steps}: held out {trainee.examine()}")
                    exams.finished()
        finally:
            torch.backends.cudnn.benchmark = False
        self._refuse_too_little()
        self.save()
        self._clock = None

    def save(self) -> None:
        """Write the checkpoint."""
        if self.leads:
            if self._clock is not None:
                self.spent = self._clock.spent
            progress = {"args": self._identity, "steps": self.steps, "spent": self.spent}
            with self._signals.held():
                save_checkpoint(self.checkpoint, self._parts, progress)

    def stopped(self) -> None:
        """Save what was learnt when the run is stopped."""
        self._signals.heed()
        if self._clock is not None:
            self.save()
        self.line.say(f"stopped at {self.unit} {self.steps}; the same command goes on from {self.checkpoint}")

    def _refuse_too_little(self) -> None:
        fewest, minutes = self._identity["fewest"], self._identity["minutes"]
        if self.steps < fewest:
            self._clock = None
            if self.leads:
                self.checkpoint.unlink(missing_ok=True)  # or a longer run could not use this folder
            raise PnPilotError(
                f"{minutes:g} minutes were enough for {self.steps} {self.unit}s, and fewer than {fewest} are no "
                "training: no weights were written; give it more --minutes"
            )


@contextmanager
def session(
    title: str,
    out: Path,
    parts: dict[str, Any],
    identity: dict[str, Any],
    *,
    device: torch.device,
    unit: str = "step",
    save_every: float = SAVE_EVERY,
    leads: bool = True,
) -> Iterator[Session]:
    """A session in the folder `out`, resumed; Ctrl-C, SIGTERM, a full disk or too little memory end it cleanly.

    `parts` is what a checkpoint keeps. `identity` holds the arguments of the run, `minutes` and `fewest` among them: a
    checkpoint with other arguments is refused. Of several processes one `leads`: only that one writes and prints.
    """
    with mendable(out), ProgressLine(title, quiet=not leads) as line, StopSignals() as signals:
        own = Session(
            line,
            signals,
            out / "checkpoint.safetensors",
            parts,
            identity,
            unit=unit,
            save_every=save_every,
            leads=leads,
            device=device,
        )
        own.resume()
        try:
            yield own
        except KeyboardInterrupt:
            own.stopped()
            raise


class _Timer:
    """Says once per interval that something is due."""

    def __init__(self, interval: float) -> None:
        self.interval, self.took = interval, 0.0
        self._last = time.monotonic()

    def due(self) -> bool:
        now = time.monotonic()
        if now - self._last <= self.interval:
            return False
        self._last = now
        return True

    def finished(self) -> None:
        """The work is done: note how long it `took`, and begin the next interval."""
        now = time.monotonic()
        self.took, self._last = now - self._last, now
