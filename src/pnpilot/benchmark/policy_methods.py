"""Ways to set the parameters of one solver, as methods: where it starts, policies, and those that see the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..baselines import BASELINES
from ..errors import UnknownName
from ..policies import POLICIES, build_policy
from ..policies.learned import Learned
from ..tasks import Task
from .methods import Method, Outcome, Rows, baseline_rows, chosen_methods
from .oracles import ORACLES
from .policy_runs import Rig, Run


class StartMethod(Method):
    """The image that solvers start from."""

    def __init__(self, task: Task, rig: Rig) -> None:
        self.name, self.rig = task.start, rig
        self.made_with = [rig.estimate_noise]

    def __call__(self, y: Tensor, physics: Any, truth: Tensor | None = None) -> Outcome:  # noqa: ARG002
        """No iteration."""
        return Outcome(self.rig.opened(y, physics).x0(), torch.zeros(len(y), dtype=torch.long))


class PolicyMethod(Method):
    """A policy, which drives the solver through `rollout` alone: without the safety net of the model.

    A table of policies is to show where one diverges. A starred one stops each image where it is best; it shares the
    run of the one without a star.
    """

    whole_set = True

    def __init__(self, name: str, rig: Rig, trained: Learned | None = None, *, starred: bool = False) -> None:
        self.policy, self.rig, self.trained, self.starred = name, rig, trained, starred
        self.name = f"{name}*" if starred else name
        self.needs_truth = starred
        sha256 = None if trained is None else trained.sha256
        self.made_with = [rig.solver, rig.denoiser.sha256, rig.estimate_noise, sha256]
        if starred:
            rig.starred.add(name)

    @torch.no_grad()
    def __call__(self, y: Tensor, physics: Any, truth: Tensor | None = None) -> Outcome:
        """Run, unless the run is known."""
        work, every = self.rig.work(y, physics), self.policy in self.rig.starred
        run = work.runs.get((self.policy, every))
        if run is None:
            run = work.run(self.trained or build_policy(self.policy, work.solver), every)
            work.runs[self.policy, every] = run
        return self._outcome(run, truth)

    def _outcome(self, run: Run, truth: Tensor | None) -> Outcome:
        if not self.starred:
            return run.stopped()
        assert truth is not None
        return run.at_best(truth)


class OracleMethod(PolicyMethod):
    """Constants searched with the truth at hand; with a star for the best PSNR over the iterations, not the last."""

    def __init__(self, name: str, rig: Rig, *, starred: bool = False) -> None:
        super().__init__(name, rig, starred=starred)
        self.needs_truth = True

    @torch.no_grad()
    def __call__(self, y: Tensor, physics: Any, truth: Tensor | None = None) -> Outcome:
        """Search, and run with what was found."""
        assert truth is not None
        work = self.rig.work(y, physics)
        oracle = work.searched(ORACLES[self.policy](work.solver, best_stop=self.starred), truth)
        outcome = self._outcome(work.run(oracle, self.starred), truth)
        return outcome._replace(found={name: values.expand(len(y)) for name, values in oracle.values.items()})


def policy_rows(task: Task, rig: Rig, learned: Mapping[str, Learned]) -> Rows:
    """The start, then policies made by hand, those that see the truth, and learned ones; a star is a perfect stop."""
    made = {name: PolicyMethod for name in POLICIES if not POLICIES[name].needs_weights}
    kinds = {**made, **dict.fromkeys(ORACLES, OracleMethod)}
    return {
        task.start: partial(StartMethod, task, rig),
        **{
            name + star: partial(kind, name, rig, starred=bool(star))
            for name, kind in kinds.items()
            for star in ("", "*")
        },
        **{name: partial(PolicyMethod, name, rig, policy) for name, policy in learned.items()},
    }


def policy_methods(task: Task, rig: Rig, learned: Mapping[str, Learned], wanted: Sequence[str]) -> list[Method]:
    """The rows asked for, baselines among them, or all of policies."""
    rows = policy_rows(task, rig, learned)
    # A baseline may have the name of the start, as zero-filled has in MRI: the row is then the start.
    known = {**rows, **baseline_rows((name for name in BASELINES if name not in rows), task)}
    for name in wanted:
        if name in POLICIES and name not in known:
            kind = POLICIES[name]
            others = [own for of, own in kind.shipped() if of == task.name] if issubclass(kind, Learned) else []
            raise UnknownName(
                f"no policy {name!r} ships for this task, solver and denoiser: "
                + (f"add --solver {' or '.join(others)}, for which one does, or " if others else "")
                + f"train one with `pnpilot train policy --method {name}` and add --policy FOLDER"
            )
    return chosen_methods(known, wanted or list(rows))
