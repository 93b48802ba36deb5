"""The methods of a table: what they have in common, our model as users call it, and everyone else's as a baseline."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..baselines import BASELINES, build_baseline
from ..errors import UnknownName, require
from ..model import PnPilot
from ..policies.learned import Learned
from ..safety import SAFE
from ..tasks import Task
from .learned import learned_policy, ships
from .tables import table_of


class Outcome(NamedTuple):
    """What a method made of a batch."""

    image: Tensor
    """Plain images (B, C, H, W)."""
    iterations: Tensor
    """How many each image took (B,)."""
    found: Mapping[str, Tensor] = {}
    """Constants that were searched for each image (B,), by name."""
    seconds: float | None = None
    """Per image, where the time of the call is not the method's own: it searched, or used a run made before."""


class Method(ABC):
    """A way to reconstruct: a row of a table."""

    name: str
    made_with: Any = None
    """What its results depend on besides data and code: a JSON value."""
    one_by_one: bool = False
    """Whether larger batches are no faster."""
    whole_set: bool = False
    """Whether it takes all images of a condition in one call and cuts them into batches itself."""
    needs_truth: bool = False
    """Whether it sees the true images; others are given None."""

    @abstractmethod
    def __call__(self, y: Tensor, physics: Any, truth: Tensor | None) -> Outcome:
        """Reconstruct a batch."""


class ModelMethod(Method):
    """PnPilot as users call it, with its safety net: by the learned policy of the task, or else the schedule."""

    def __init__(self, name: str, task: Task, device: torch.device, folder: Path | None = None) -> None:
        self.name, self.task = name, task
        options: dict[str, Any] = {"peak": 1.0, "real": True, "device": device}
        if name == SAFE:
            self.model = PnPilot(policy=SAFE, **options)
            self.made_with = [SAFE, self.model.denoiser.sha256]
        else:
            policy = learned_policy(task.name, folder)
            self.model = PnPilot(policy.denoiser, policy=policy, **options)
            self.made_with = [policy.sha256, self.model.denoiser.sha256]

    def __call__(self, y: Tensor, physics: Any, truth: Tensor | None = None) -> Outcome:  # noqa: ARG002
        """Reconstruct a batch."""
        result = self.model.reconstruct(y, physics)
        iterations = torch.tensor([trace["iterations"] for trace in result.trace])
        return Outcome(self.task.extract(result.image), iterations)


class BaselineMethod(Method):
    """Somebody else's method."""

    def __init__(self, name: str, task: Task) -> None:
        self.name, self.task, self.baseline = name, task, build_baseline(name)
        self.made_with, self.one_by_one = self.baseline.made_with(), self.baseline.one_by_one

    def __call__(self, y: Tensor, physics: Any, truth: Tensor | None = None) -> Outcome:  # noqa: ARG002
        """Reconstruct a batch."""
        image, iterations = self.baseline.answer(y, physics)
        return Outcome(self.task.extract(image), iterations)


Rows = Mapping[str, Callable[[], Method]]
"""The methods that a table may have rows for, in its order; each is made when it is chosen."""


def comparison_rows(task: Task, device: torch.device, policy: Path | None = None) -> Rows:
    """The baselines of the task's table, and ours last."""
    ours = Learned.name if policy is not None or ships(task.name) else SAFE
    return {**baseline_rows(table_of(task).baselines(), task), ours: partial(ModelMethod, ours, task, device, policy)}


def baseline_rows(names: Iterable[str], task: Task) -> Rows:
    """Rows of these baselines."""
    return {name: partial(BaselineMethod, name, task) for name in names}


def chosen_methods(rows: Rows, names: Sequence[str]) -> list[Method]:
    """The methods of these names, ready to run; refuses unknown ones before any is made."""
    for name in names:
        if name not in rows:
            raise UnknownName(f"unknown method {name!r}; known: {', '.join(rows)}")
    return [rows[name]() for name in names]


def comparison_methods(
    task: Task, device: torch.device, wanted: Sequence[str], policy: Path | None = None
) -> tuple[list[Method], dict[str, str]]:
    """The methods asked for, or all that can run here; and why each of the others cannot."""
    rows, left_out = comparison_rows(task, device, policy), {}
    ours = list(rows)[-1]
    require(
        policy is None or not wanted or ours in wanted,
        f"--policy is for the method {ours!r}, which is not among the methods",
    )
    if not wanted:
        left_out = {name: why for name in rows if name != ours and (why := BASELINES[name].obstacle())}
    return chosen_methods(rows, wanted or [name for name in rows if name not in left_out]), left_out
