"""Hand-made schedules: a denoising strength that falls from 49/255 to a last value, and a penalty that follows it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import Incompatible
from ..problem import Problem
from ..solvers import Solver
from ..types import Action
from .base import POLICIES, Policy

FIRST = 49 / 255
"""Where both published schedules begin."""
FLOOR = 0.255 / 255
"""Noise levels under this count as this."""


@POLICIES.register("schedule")
class Schedule(Policy):
    """DPIR's schedule: σ_k falls log-linearly from 49/255 to the noise level, μ_k = 0.23·σ_n²/σ_k²."""

    weight = 0.23

    def __init__(
        self, solver: Solver, iterations: int = 30, last: float | None = None, weight: float | None = None
    ) -> None:
        super().__init__(solver, iterations)
        self.last = last
        self.weight = self.weight if weight is None else weight

    def __call__(self, problem: Problem, state: Any, t: int) -> Action:  # noqa: ARG002
        """The parameters of iteration t."""
        noise = self._noise(problem)
        share = t / max(1, self.decisions - 1)
        sigma = torch.exp((1 - share) * torch.log(torch.full_like(noise, FIRST)) + share * torch.log(self._last(noise)))
        values = {"sigma": sigma}
        if "mu" in self.solver.params:
            values["mu"] = self.weight * noise.square() / sigma.square()
        return self.constant(problem, **values)

    def _last(self, noise: Tensor) -> Tensor:
        return noise if self.last is None else torch.full_like(noise, self.last)

    @staticmethod
    def _noise(problem: Problem) -> Tensor:
        if problem.units.sigma_n is None:
            raise Incompatible(
                "a schedule follows the noise level, and this physics declares none: "
                "give it a noise model with a sigma, pass sigma_n, or use policy='fixed'"
            )
        return problem.units.sigma_n.clamp_min(FLOOR)


@POLICIES.register("ircnn")
class IRCNNSchedule(Schedule):
    """IRCNN's schedule: σ_k falls log-linearly from 49/255 to 15/255, μ_k = σ_n²/(3σ_k²)."""

    weight = 1 / 3

    def __init__(
        self, solver: Solver, iterations: int = 30, last: float | None = 15 / 255, weight: float | None = None
    ) -> None:
        super().__init__(solver, iterations, last, weight)
