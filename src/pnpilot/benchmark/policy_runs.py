"""Runs of policies through one solver, and what the rows of a table on the same data share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..denoisers import Denoiser
from ..metrics import psnr
from ..policies import Policy
from ..problems import Hints, Problem, open_problem
from ..reconstruct import check_fit, rollout
from ..solvers import Solver, build_solver
from ..tasks import Setting, Task
from .methods import Outcome
from .oracles import Oracle, Surface
from .timing import timed


class Run(NamedTuple):
    """A policy's run: for each batch the images after every decision that was kept, and their iterations so far."""

    batches: list[list[tuple[Tensor, Tensor]]]
    seconds: float
    """Per image."""

    def stopped(self) -> Outcome:
        """The images where the policy stopped."""
        images, iterations = zip(*(batch[-1] for batch in self.batches), strict=True)
        return Outcome(torch.cat(images), torch.cat(iterations), seconds=self.seconds)

    def at_best(self, truth: Tensor) -> Outcome:
        """Each image at its best, as by a perfect stop; seconds are the share of the run up to there."""
        images, iterations = [], []
        for batch, own in zip(self.batches, truth.split([len(batch[0][0]) for batch in self.batches]), strict=True):
            scores = torch.stack([psnr(image, own) for image, _ in batch])
            best = scores.nan_to_num(nan=-torch.inf).argmax(0).tolist()
            images += [batch[when][0][place] for place, when in enumerate(best)]
            iterations += [batch[when][1][place] for place, when in enumerate(best)]
        last, best_iterations = self.stopped().iterations, torch.stack(iterations)
        share = best_iterations.float().mean().item() / last.float().mean().item()
        return Outcome(torch.stack(images), best_iterations, seconds=self.seconds * share)


@dataclass
class Rig:
    """What the policies of a table share: solver, denoiser, and the work on the data at hand."""

    solver: str
    denoiser: Denoiser
    batch: int = 16
    """Images per batch when running, and points × images when searching."""
    estimate_noise: bool = False
    """Whether the noise level is estimated from the data."""
    starred: set[str] = field(default_factory=set)
    """Policies with a starred row: their runs keep the images of every decision, those of others the last."""
    _work: Work | None = field(default=None, init=False, repr=False)

    def opened(self, y: Tensor, physics: Any) -> Problem:
        """The problem as the solver sees it."""
        return open_problem(y, physics, Hints(peak=1.0, real=True, sigma_n="estimate" if self.estimate_noise else None))

    def fitting_solver(self, problem: Problem) -> Solver:
        """The solver; refused if it does not fit the problem."""
        solver = build_solver(self.solver, problem.offers)
        check_fit(problem, solver)
        return solver

    def solver_for(self, task: Task, setting: Setting, shape: tuple[int, int, int]) -> str:
        """The name of the solver that images (C, H, W) get in a setting."""
        return self.fitting_solver(self.opened(*task.simulate(torch.full((1, *shape), 0.5), setting))).name

    def work(self, y: Tensor, physics: Any) -> Work:
        """The work on these data; that on others is dropped, as a table goes through its conditions one by one."""
        if self._work is None or self._work.y is not y:
            problem = self.opened(y, physics)
            self._work = Work(self, y, problem, self.fitting_solver(problem))
        return self._work


@dataclass
class Work:
    """The problem of a condition, with what its rows share: points that were searched, and runs."""

    rig: Rig
    y: Tensor
    problem: Problem
    solver: Solver
    surface: Surface | None = None
    runs: dict[tuple[str, bool], Run] = field(default_factory=dict)
    """By policy, and whether every image was kept."""

    def searched(self, oracle: Oracle, truth: Tensor) -> Oracle:
        """The oracle with its constants; points that another one visited are known."""
        rig = self.rig
        self.surface = self.surface or Surface(self.problem, self.solver, rig.denoiser, truth, batch=rig.batch)
        oracle.search(self.surface)
        return oracle

    def run(self, policy: Policy, every: bool) -> Run:
        """Run a policy in batches; keep the images of every decision, or the last alone."""
        everyone = torch.arange(len(self.problem), device=self.y.device)
        batches, seconds = timed(
            lambda: [self._batch(policy, index, every) for index in everyone.split(self.rig.batch)], self.y.device
        )
        return Run(batches, seconds / len(everyone))

    def _batch(self, policy: Policy, index: Tensor, every: bool) -> list[tuple[Tensor, Tensor]]:
        kept: list[tuple[Tensor, Tensor]] = []
        for step in rollout(self.problem.select(index), policy.solver, self.rig.denoiser, policy.select(index)):
            if every or step.last:
                kept.append((policy.solver.output(step.state).real, step.iterations))
        return kept
