"""The methods of a comparison, each called as users call it: our policy, and everyone else's as a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..baselines import BASELINES, Answer, Baseline, build_baseline
from ..errors import BadInput, Incompatible, UnknownName
from ..model import PnPilot
from ..policies.learned import Learned
from ..tasks import Task
from ..weights import read_card, shipped_weights
from .tables import table_of

SCHEDULE = "schedule"


def ours(task: Task, policy: Path | None = None) -> str:
    """Our row: the learned policy, if one ships for the task or was given, and the schedule otherwise."""
    ships = any(read_card(name).get("task") == task.name for name in shipped_weights(f"{Learned.name}-*"))
    return Learned.name if ships or policy is not None else SCHEDULE


def method_names(task: Task, policy: Path | None = None) -> list[str]:
    """All methods, in the order of the table."""
    return [*table_of(task).baselines(), ours(task, policy)]


def choose_methods(task: Task, wanted: Sequence[str], policy: Path | None = None) -> tuple[list[str], dict[str, str]]:
    """The methods asked for, or all that can run here; and why each of the others cannot."""
    known = method_names(task, policy)
    for name in wanted:
        if name not in known:
            raise UnknownName(f"unknown method {name!r}; known: {', '.join(known)}")
    obstacles = {name: why for name in known[:-1] if (why := BASELINES[name].obstacle())}
    for name in wanted:
        if name in obstacles:
            raise BadInput(f"{name} {obstacles[name]}")
    return list(wanted) or [name for name in known if name not in obstacles], {} if wanted else obstacles


class Method:
    """A way to reconstruct, by name; a learned policy is the one that ships for the task, or one in a folder."""

    def __init__(self, name: str, task: Task, device: torch.device, policy: Path | None = None) -> None:
        self.name, self.task = name, task
        self.baseline: Baseline | None = None
        self.made_with: Any
        """What its results depend on besides data and code."""
        options: dict[str, Any] = {"peak": 1.0, "real": True, "device": device}
        if name == Learned.name:
            learned = learned_policy(task.name, policy)
            self.model = PnPilot(learned.denoiser, policy=learned, **options)
            self.made_with = [learned.sha256, self.model.denoiser.sha256]
        elif name == SCHEDULE:
            self.model = PnPilot(policy=SCHEDULE, **options)
            self.made_with = [SCHEDULE, self.model.denoiser.sha256]
        else:
            self.baseline = build_baseline(name)
            self.made_with = self.baseline.made_with()
        self.one_by_one = self.baseline is not None and self.baseline.one_by_one

    def __call__(self, y: Tensor, physics: Any) -> Answer:
        """Reconstruct a batch of plain images (B, C, H, W)."""
        if self.baseline is not None:
            image, iterations = self.baseline.answer(y, physics)
        else:
            result = self.model.reconstruct(y, physics)
            image, iterations = result.image, torch.tensor([trace["iterations"] for trace in result.trace])
        return Answer(self.task.extract(image), iterations)


def learned_policy(task: str, folder: Path | None = None) -> Learned:
    """The policy that ships for a task, or the one in a folder if it was trained for that task."""
    found = Learned.find(folder or task)
    if found.task != task:
        raise Incompatible(f"the policy in {folder} was trained for task {found.task!r}, not for {task!r}")
    return found
