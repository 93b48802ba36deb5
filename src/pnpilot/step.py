"""Step: what the loop reports after every decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from .problems import Problem
from .trace import Trace
from .types import Action


@dataclass(frozen=True)
class Step:
    """A batch after one decision: all that a progress bar or a benchmark needs to know."""

    index: int
    """Which decision this was, from zero."""
    last: bool
    """Whether it was the last."""
    image: Tensor = field(repr=False)
    """The images so far, in the user's units and the layout of the physics."""
    state: Any = field(repr=False)
    """The solver's own variables, in units of each image's peak."""
    action: Action = field(repr=False)
    ran: Tensor
    """(B,): the images that ran in this decision."""
    active: Tensor
    """(B,): the images that go on after it."""
    iterations: Tensor
    """(B,): solver iterations so far."""
    history: Trace = field(repr=False)
    """What was decided in this run; `trace` gives it as plain data."""
    problem: Problem = field(repr=False)
    """What is solved, with all its images."""
    warnings: tuple[str, ...] = ()
    """What a user should know; only the last step has warnings."""

    @property
    def trace(self) -> list[dict[str, Any]]:
        """One JSON-able record per image: what was chosen up to this decision, and why it stopped."""
        return self.history.records(self.index + 1)
