"""From a task and true images to the Problem that a solver is given."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from .problems import Hints, Problem, open_problem
from .tasks import Setting, Task


def simulated(
    task: Task, image: Tensor, setting: Setting | Sequence[Setting], seed: int = 0, *, peak: float | None = 1.0
) -> Problem:
    """The Problem of data simulated from real images in [0, 1]."""
    y, physics = task.simulate(image, setting, seed)
    return open_problem(y, physics, Hints(peak=peak, real=True))
