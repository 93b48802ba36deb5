"""Wall-clock budgets: schedules follow the share of time spent, so any number of minutes is a full run."""

from __future__ import annotations

import math
import time

LONGEST_WARMUP = 0.05
"""As a share of the budget."""


class Clock:
    """Seconds spent on a run, over all its resumptions, against its budget."""

    def __init__(self, minutes: float, spent: float = 0.0) -> None:
        self.budget = 60 * minutes
        self._start = time.monotonic() - spent

    @property
    def spent(self) -> float:
        """Seconds so far."""
        return time.monotonic() - self._start

    @property
    def share(self) -> float:
        """Spent share of the budget, at most 1."""
        return min(1.0, self.spent / self.budget)


def cosine(share: float, step: int, warmup: int) -> float:
    """Learning-rate factor: a linear warm-up in steps, then a half cosine over the whole budget."""
    # Otherwise a run of few steps would spend much of its budget warming up.
    warm = max((step + 1) / warmup, share / LONGEST_WARMUP)
    return min(1.0, warm) * 0.5 * (1 + math.cos(math.pi * share))
