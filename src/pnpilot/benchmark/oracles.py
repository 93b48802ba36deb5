"""Policies that look at the truth: what constant parameters and a perfect stop could reach. For comparison only."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from ..denoisers import Denoiser
from ..errors import Incompatible
from ..metrics import psnr
from ..policies import Policy
from ..policies.base import chosen_values
from ..policies.fixed import Fixed
from ..problems import Problem
from ..reconstruct import rollout
from ..solvers import Solver
from ..types import Action, Range

COARSE, REFINEMENTS = 8, 3
"""Points per axis of the first grid; how often it is refined around the best."""


def search_range(limits: Range) -> tuple[float, float]:
    """Where to look for the best value of a parameter."""
    return limits.search or (max(limits.low, limits.high / 100), limits.high)


def searched(solver: Solver) -> tuple[list[str], Tensor, Tensor]:
    """The first two parameters of a solver, with the logarithms of the ends of their search range."""
    names = list(solver.params)[:2]
    low, high = zip(*(search_range(solver.params[name]) for name in names), strict=True)
    return names, torch.tensor(low).log(), torch.tensor(high).log()


@torch.no_grad()
def psnr_curve(problem: Problem, solver: Solver, denoiser: Denoiser, policy: Policy, truth: Tensor) -> Tensor:
    """PSNR after every decision of a policy (decisions, B); for images that stopped, their last value."""
    steps = rollout(problem, solver, denoiser, policy)
    return torch.stack([psnr(solver.output(step.state), truth) for step in steps])


class Surface:
    """PSNR curves of a solver over constant parameters, each point computed once however many searches visit it."""

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        denoiser: Denoiser,
        truth: Tensor,
        iterations: int = 30,
        batch: int = 64,
    ) -> None:
        self.problem, self.solver, self.denoiser, self.truth = problem, solver, denoiser, truth
        self.iterations, self.batch = iterations, batch
        self._known: dict[tuple[float, ...], Tensor] = {}

    def curves(self, points: Tensor) -> Tensor:
        """(P, B, iterations) at P points of log-parameters for each of B images (P, B, 2)."""
        rows = [(image, *point) for column in points.tolist() for image, point in enumerate(column)]
        keys = [tuple(round(number, 4) for number in row) for row in rows]
        missing = [row for key, row in dict(zip(keys, rows, strict=True)).items() if key not in self._known]
        # Points × images, cut into batches: on a GPU several points run side by side.
        for start in range(0, len(missing), self.batch):
            part = torch.tensor(missing[start : start + self.batch])
            index, values = part[:, 0].long().to(self.truth.device), part[:, 1:].exp().T.to(self.truth)
            policy = Fixed(self.solver, self.iterations, **dict(zip(self.solver.params, values, strict=False)))
            problem, truth = self.problem.select(index), self.truth[index]
            found = psnr_curve(problem, self.solver, self.denoiser, policy, truth).T.cpu()
            for row, curve in zip(missing[start : start + self.batch], found, strict=True):
                self._known[tuple(round(number, 4) for number in row)] = curve
        return torch.stack([self._known[key] for key in keys]).reshape(*points.shape[:2], -1)


class Oracle(Policy):
    """Constant parameters searched for each image with the truth at hand."""

    name = "oracle"
    needs_truth = True
    shared = False
    """Whether one set of parameters must serve all images."""

    def __init__(self, solver: Solver, iterations: int = 30, *, best_stop: bool = False) -> None:
        super().__init__(solver, iterations)
        self.best_stop = best_stop
        self.values: dict[str, Tensor] = {}

    def __call__(self, problem: Problem, state: Any, t: int) -> Action:  # noqa: ARG002
        """The parameters that `fit` found."""
        if not self.values:
            raise Incompatible(
                f"the policy {self.name!r} must be fitted to true images first: policy.fit(problem, denoiser, truth)"
            )
        return self.constant(problem, **self.values)

    def select(self, index: Tensor) -> Oracle:
        """Values per image follow their images."""
        chosen = copy.copy(self)
        chosen.values = chosen_values(self.values, index)
        return chosen

    def fit(self, problem: Problem, denoiser: Denoiser, truth: Tensor) -> None:
        """Search."""
        self.search(Surface(problem, self.solver, denoiser, truth, self.decisions))

    @torch.no_grad()
    def search(self, surface: Surface) -> None:
        """The best constants for all images; then, unless they are shared, better ones for each image, if any."""
        best = self._refined(surface, shared=True)[:1]
        if not self.shared:
            own = self._refined(surface, shared=False)
            best = self._best(torch.stack([best.expand_as(own), own]), surface, shared=False)
        self.values = dict(zip(searched(self.solver)[0], best.exp().T.to(surface.truth), strict=True))

    def _refined(self, surface: Surface, *, shared: bool) -> Tensor:
        """The best point of a coarse grid, moved three times to the best of a finer grid around it (B, 2)."""
        names, low, high = searched(self.solver)
        grid = torch.cartesian_prod(*(torch.arange(COARSE) for _ in names)).reshape(-1, len(names))
        around = torch.cartesian_prod(*(torch.arange(-1, 2) for _ in names)).reshape(-1, len(names))
        spacing = (high - low) / (COARSE - 1)
        points = (low + grid * spacing)[:, None].expand(-1, len(surface.problem), -1)
        for _ in range(REFINEMENTS):
            spacing = spacing / 2
            points = (self._best(points, surface, shared=shared) + around[:, None] * spacing).clamp(low, high)
        return self._best(points, surface, shared=shared)

    def _best(self, points: Tensor, surface: Surface, *, shared: bool) -> Tensor:
        curves = surface.curves(points)
        scores = curves.amax(-1) if self.best_stop else curves[..., -1]
        if shared:
            scores = scores.mean(1, keepdim=True).expand_as(scores)
        return points[scores.argmax(0), torch.arange(points.shape[1])]


class FixedOptimal(Oracle):
    """Constant parameters, the same for all images, best on average with the truth at hand."""

    name = "fixed-optimal"
    shared = True


ORACLES: dict[str, type[Oracle]] = {kind.name: kind for kind in (FixedOptimal, Oracle)}
"""The oracles that tables have rows for."""


class BestStop(Policy):
    """Another policy, stopped where the PSNR of each image is highest: the starred rows of the paper.

    A policy that searches then maximises the best PSNR over the iterations, not the last.
    """

    name = "best-stop"
    needs_truth = True
    stops = True

    def __init__(self, inner: Policy) -> None:
        super().__init__(inner.solver, inner.decisions)
        if isinstance(inner, Oracle):
            inner.best_stop = True
        self.inner = inner
        self.last = torch.empty(0)

    def fit(self, problem: Problem, denoiser: Denoiser, truth: Tensor) -> None:
        """Run the policy once and note where each image was best."""
        self.inner.fit(problem, denoiser, truth)
        self.last = psnr_curve(problem, self.solver, denoiser, self.inner, truth).argmax(0)

    def __call__(self, problem: Problem, state: Any, t: int) -> Action:
        """The other policy's parameters, with a perfect stop."""
        if not len(self.last):
            raise Incompatible("a perfect stop needs true images first: policy.fit(problem, denoiser, truth)")
        return self.inner(problem, state, t)._replace(stop=self.last <= t)

    def select(self, index: Tensor) -> BestStop:
        """Each image keeps its own stop."""
        chosen = copy.copy(self)
        chosen.inner, chosen.last = self.inner.select(index), self.last[index]
        return chosen
