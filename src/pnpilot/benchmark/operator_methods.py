"""The methods of the table of operators: where solvers start, ours, what constants could reach, and other people's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..baselines import BASELINES
from ..baselines.tv import TotalVariation
from ..metrics import psnr
from ..model import PnPilot
from ..physics import selected
from ..policies.learned import Learned
from ..safety import SAFE
from ..tasks import Task
from .learned import ships
from .methods import BaselineMethod, Method, ModelMethod, Outcome, Rows, baseline_rows
from .oracles import ORACLES
from .policy_methods import OracleMethod
from .policy_runs import Rig

TV_ITERATIONS = 200
"""Enough for blurs, too."""
TV_WEIGHT = 0.25
"""In units of the noise level: the best for nine operators on two photographs of BSD68."""
PEERS = ("dpir", "dpir-published", "tv", "tv-best")
COLUMNS = ("start", SAFE, *ORACLES, Learned.name, *PEERS)
"""What is measured if nothing is asked for."""


class StartMethod(Method):
    """The image that our solvers start from."""

    name = "start"

    def __init__(self, task: Task, rig: Rig) -> None:
        self.task, self.rig = task, rig

    def __call__(self, y: Tensor, physics: Any, truth: Tensor | None = None) -> Outcome:  # noqa: ARG002
        """No iteration."""
        problem = self.rig.opened(y, physics)
        return Outcome(self.task.extract(problem.export(problem.x0())).real, torch.zeros(len(y), dtype=torch.long))


class OwnMethod(ModelMethod):
    """PnPilot with a policy from a folder, whatever task it was trained for."""

    def __init__(self, name: str, task: Task, device: torch.device, folder: Path) -> None:
        self.name, self.task = name, task
        self.model = PnPilot.from_pretrained(folder, peak=1.0, real=True, device=device)
        policy = self.model.policy
        assert isinstance(policy, Learned)
        self.made_with = [policy.sha256, self.model.denoiser.sha256]


class TV(BaselineMethod):
    """Total variation, weighted by the noise level; `best` takes the weight that is best for the set."""

    def __init__(self, name: str, task: Task, *, best: bool = False) -> None:
        super().__init__("tv", task)
        self.name, self.needs_truth, self.whole_set = name, best, best
        self.baseline = TotalVariation(TV_WEIGHT, TV_ITERATIONS)
        self.made_with = ["best" if best else self.baseline.made_with(), TV_ITERATIONS]

    def __call__(self, y: Tensor, physics: Any, truth: Tensor | None = None) -> Outcome:
        """Once, or for weights from a twentieth to four noise levels, each √2 times the one before."""
        if truth is None:
            return super().__call__(y, physics)
        # All weights in one batch: on a GPU they take hardly longer than one of them.
        weights = 2 ** (torch.arange(-9, 5, device=y.device) / 2)
        index = torch.arange(len(y), device=y.device).repeat(len(weights))
        method = TotalVariation(weights.repeat_interleave(len(y)), TV_ITERATIONS)
        image, iterations = method.answer(y[index], selected(physics, index, len(y)))
        found = self.task.extract(image).unflatten(0, (len(weights), len(y)))
        best = torch.stack([psnr(one, truth).mean() for one in found]).argmax()
        return Outcome(found[best], iterations[: len(y)], {"weight": weights[best].expand(len(y))})


def operator_rows(task: Task, rig: Rig, device: torch.device, policies: Mapping[str, Path] | None = None) -> Rows:
    """All methods there are for a task, each made when it is chosen; those that do not apply refuse the physics."""
    others = baseline_rows((name for name in BASELINES if name not in ("tv", SAFE)), task)
    return {
        "start": partial(StartMethod, task, rig),
        SAFE: partial(ModelMethod, SAFE, task, device),
        **{name: partial(OracleMethod, name, rig) for name in ORACLES},
        **({Learned.name: partial(ModelMethod, Learned.name, task, device)} if ships(task.name) else {}),
        **{name: partial(OwnMethod, name, task, device, folder) for name, folder in (policies or {}).items()},
        **others,
        "tv": partial(TV, "tv", task),
        "tv-best": partial(TV, "tv-best", task, best=True),
    }
