"""Policies that look at the truth: what constant parameters and a perfect stop could reach. For comparison only."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..errors import Incompatible
from ..metrics import psnr
from ..problem import Problem
from ..solvers import Solver
from ..transition import transition
from ..types import Action, Denoise
from .base import POLICIES, Policy
from .fixed import Fixed

COARSE, REFINEMENTS = 6, 3
"""Points per axis of the first grid; how often it is refined around the best."""
SEARCHED = {"sigma": (3 / 255, 70 / 255), "mu": (1e-3, 3.0), "tau": (0.1, 2.0), "beta": (0.05, 2.0), "lam": (0.02, 2.0)}
"""Where to look for the best value of a parameter; others are searched over their own range."""


class Survey(NamedTuple):
    """PSNR curves (P, B, iterations) at P points of log-parameters (P, B, 2)."""

    points: Tensor
    curves: Tensor


def searched(solver: Solver) -> tuple[list[str], Tensor, Tensor]:
    """The first two parameters of a solver, with the logarithms of the ends of their search range."""
    names = list(solver.params)[:2]
    own = {name: (max(limits.low, limits.high / 100), limits.high) for name, limits in solver.params.items()}
    low, high = zip(*(SEARCHED.get(name, own[name]) for name in names), strict=True)
    return names, torch.tensor(low).log(), torch.tensor(high).log()


def psnr_curve(problem: Problem, solver: Solver, denoise: Denoise, policy: Policy, truth: Tensor) -> Tensor:
    """PSNR after every iteration of a policy that takes one per decision (iterations, B)."""
    state, curve = solver.init(problem), []
    for t in range(policy.decisions):
        state = transition(solver, denoise, problem, state, policy(problem, state, t))
        curve.append(psnr(solver.output(state), truth))
    return torch.stack(curve)


@POLICIES.register("oracle")
class Oracle(Policy):
    """Constant parameters searched for each image with the truth at hand."""

    needs_truth = True
    shared = False
    """Whether one set of parameters must serve all images."""

    def __init__(self, solver: Solver, iterations: int = 30, *, best_stop: bool = False, batch: int = 64) -> None:
        super().__init__(solver, iterations)
        self.best_stop, self.batch = best_stop, batch
        self.values: dict[str, Tensor] = {}

    def __call__(self, problem: Problem, state: Any, t: int) -> Action:  # noqa: ARG002
        """The parameters that `fit` found."""
        if not self.values:
            raise Incompatible(
                f"the policy {self.name!r} must be fitted to true images first: policy.fit(problem, denoise, truth)"
            )
        return self.constant(problem, **self.values)

    @torch.no_grad()
    def fit(self, problem: Problem, denoise: Denoise, truth: Tensor, survey: Survey | None = None) -> None:
        """Start from the best point of a coarse grid, then three times from the best of a finer one around it."""
        names, low, high = searched(self.solver)
        survey = survey or self.survey(problem, denoise, truth)
        spacing = (high - low) / (COARSE - 1)
        around = torch.cartesian_prod(*(torch.arange(-1, 2) for _ in names)).reshape(-1, len(names))
        around = around[around.any(1)][:, None]
        best, score = self._best(survey)
        for _ in range(REFINEMENTS):
            spacing = spacing / 2
            points = (best + around * spacing).clamp(low, high)
            finer, found = self._best(self._try(points, problem, denoise, truth))
            best = torch.where((found > score)[:, None], finer, best)
            score = torch.maximum(found, score)
        self.values = dict(zip(names, best.exp().T.to(truth), strict=True))

    @torch.no_grad()
    def survey(self, problem: Problem, denoise: Denoise, truth: Tensor) -> Survey:
        """PSNR curves on the coarse grid; policies that differ only in what they call best can share it."""
        names, low, high = searched(self.solver)
        grid = torch.cartesian_prod(*(torch.linspace(0, 1, COARSE) for _ in names)).reshape(-1, len(names))
        points = low + grid * (high - low)
        return self._try(points[:, None].expand(-1, len(problem), -1), problem, denoise, truth)

    def _try(self, points: Tensor, problem: Problem, denoise: Denoise, truth: Tensor) -> Survey:
        # Points × images, cut into batches: on a GPU several points run side by side.
        images = torch.arange(len(problem)).repeat(len(points))
        flat = points.reshape(len(images), -1)
        curves = []
        for rows in torch.arange(len(images)).split(self.batch):
            index = images[rows].to(truth.device)
            values = dict(zip(self.solver.params, flat[rows].exp().T.to(truth), strict=False))
            policy = Fixed(self.solver, self.decisions, **values)
            curves.append(psnr_curve(problem.select(index), self.solver, denoise, policy, truth[index]).cpu())
        return Survey(points, torch.cat(curves, 1).T.reshape(len(points), len(problem), -1))

    def _best(self, survey: Survey) -> tuple[Tensor, Tensor]:
        scores = survey.curves.amax(-1) if self.best_stop else survey.curves[..., -1]
        if self.shared:
            scores = scores.mean(1, keepdim=True).expand_as(scores)
        score, winner = scores.max(0)
        return survey.points[winner, torch.arange(len(score))], score


@POLICIES.register("fixed-optimal")
class FixedOptimal(Oracle):
    """Constant parameters, the same for all images, searched to be best on average with the truth at hand."""

    shared = True


class BestStop(Policy):
    """Another policy, stopped for each image where its PSNR is highest: the starred rows of the paper."""

    needs_truth = True
    stops = True

    def __init__(self, inner: Policy) -> None:
        super().__init__(inner.solver, inner.decisions)
        self.inner = inner
        self.last = torch.empty(0)

    def fit(self, problem: Problem, denoise: Denoise, truth: Tensor) -> None:
        """Run the policy once and note where each image was best."""
        self.inner.fit(problem, denoise, truth)
        with torch.no_grad():
            self.last = psnr_curve(problem, self.solver, denoise, self.inner, truth).argmax(0)

    def __call__(self, problem: Problem, state: Any, t: int) -> Action:
        """The other policy's parameters, with a perfect stop."""
        if not len(self.last):
            raise Incompatible("a perfect stop needs true images first: policy.fit(problem, denoise, truth)")
        return self.inner(problem, state, t)._replace(stop=self.last <= t)
