"""Hand-made schedules: a denoising strength that falls from a first value to a last, and a penalty that follows it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import require
from ..problems import Problem
from ..solvers import Solver
from ..types import Action, ramp
from .base import POLICIES, Policy, known_noise

PUBLISHED = 49 / 255
"""Where the published schedules begin."""
TINY = 1e-6
SURE = 0.7, 0.85
"""Noise levels, over what the data show of them, from which on a multiplier may forget, and do so fully."""


@POLICIES.register("schedule")
class Schedule(Policy):
    """σ_k falls log-linearly from 35/255 to σ_n/√κ, μ_k = σ_n²/σ_k², κ the share of white noise that AᴴA keeps.

    σ_n/√κ is the noise level of the back-projection Aᴴy/κ: what is measured of an image is spread over all of it. Where
    that is more than 35/255, σ_k stays there; from 70/255 on it stays at that, and μ_k makes up for it, or τ without a
    μ. Where D is a mean over J measurements of the whole image, σ_n/√J takes the place of σ_n. Behind a blur, ADMM's
    multiplier forgets, and its μ_k is lower.
    `examples/choose_schedule.py` shows what other constants do.
    """

    first: float = 35 / 255
    """The first σ_k. A higher one undoes what a start gets right, such as the surroundings of missing rows."""
    last: float = 1.0
    """The last σ_k, in units of that level."""
    weight: float = 1.0
    """μ_k in units of σ_n²/σ_k²."""
    floor: float = 1 / 255
    """Noise levels under this count as this: without noise, σ and μ would vanish before gaps are filled."""
    forgets: float = 0.3
    """How much of the multiplier is forgotten at each iteration behind a blur."""
    lighter: float = 0.4
    """By which share μ_k is lower there."""

    def __init__(
        self, solver: Solver, iterations: int = 30, *, last: float | None = None, weight: float | None = None
    ) -> None:
        super().__init__(solver, iterations)
        self.last = self.last if last is None else last
        self.weight = self.weight if weight is None else weight
        require(self.last > 0 < self.weight, f"a schedule needs positive constants, got {self.last} and {self.weight}")

    def __call__(self, problem: Problem, state: Any, t: int) -> Action:  # noqa: ARG002
        """The parameters of iteration t."""
        noise = self.noise(problem).clamp_min(self.floor)
        share = t / max(1, self.decisions - 1)
        last = self.last_sigma(problem, noise)
        first = last.clamp_min(self.first)
        sigma = torch.exp((1 - share) * first.log() + share * last.log())
        params, excess, forgetting = self.solver.params, self.excess(noise), self.forgetting(problem, noise)
        values = {"sigma": sigma}
        if (limits := params.get("mu")) is not None:
            highest = limits.high * excess if limits.cautious is None else torch.full_like(noise, limits.cautious)
            wanted = self.weight * (1 - self.lighter * forgetting) * noise.square() / sigma.square()
            values["mu"] = wanted.clamp_min(limits.low).minimum(highest)
        elif (limits := params.get("tau")) is not None:
            values["tau"] = limits.default / excess
        if (limits := params.get("memory")) is not None:
            values["memory"] = limits.default * (1 - self.forgets * forgetting)
        return self.constant(problem, **values)

    def noise(self, problem: Problem) -> Tensor:
        """The noise level that it follows (B,)."""
        return known_noise(problem) / problem.averaged**0.5

    def forgetting(self, problem: Problem, noise: Tensor) -> Tensor:
        """How far the multiplier of each image forgets, from 0 to 1 (B,), for noise levels (B,).

        It is better behind a blur where the noise level is right, and worse where that is too low.
        """
        if problem.units.shown is None or "memory" not in self.solver.params:
            return torch.zeros_like(noise)
        sure = (noise / problem.units.shown.clamp_min(TINY)).nan_to_num(nan=0.0)
        return torch.as_tensor(problem.blurred).to(noise) * ramp(sure, *SURE)

    def excess(self, noise: Tensor) -> Tensor:
        """Noise (B,) over the highest σ_k, squared, and no less than one.

        Where noise is stronger than that, data would be fitted too closely with the usual limit of μ, or the usual τ.
        """
        limits = self.solver.params.get("sigma")
        return torch.ones_like(noise) if limits is None else (noise / limits.high).square().clamp_min(1)

    def last_sigma(self, problem: Problem, noise: Tensor) -> Tensor:
        """Where σ_k ends, for noise levels (B,)."""
        strongest = self.solver.params["sigma"].high if "sigma" in self.solver.params else self.first
        return (self.last * noise / problem.kept.sqrt()).clamp_max(strongest)


def patient(solver: Solver) -> Schedule:
    """The schedule with a multiplier that forgets nothing."""
    policy = Schedule(solver)
    policy.forgets = policy.lighter = 0.0
    return policy


@POLICIES.register("dpir-schedule")
class DPIRSchedule(Schedule):
    """DPIR's schedule, made for HQS: σ_k falls log-linearly from 49/255 to σ_n, μ_k = 0.23·σ_n²/σ_k²."""

    first, last, weight, floor = PUBLISHED, 1.0, 0.23, 0.255 / 255
    forgets = lighter = 0.0

    def noise(self, problem: Problem) -> Tensor:
        """As it is."""
        return known_noise(problem)

    def last_sigma(self, problem: Problem, noise: Tensor) -> Tensor:  # noqa: ARG002
        """The noise level itself."""
        return (self.last * noise).clamp_max(self.first)


@POLICIES.register("ircnn-schedule")
class IRCNNSchedule(DPIRSchedule):
    """IRCNN's schedule, made for HQS: σ_k falls log-linearly from 49/255 to 15/255, μ_k = σ_n²/(3σ_k²)."""

    first, last, weight, floor = PUBLISHED, 15 / 255, 1 / 3, 0.255 / 255

    def last_sigma(self, problem: Problem, noise: Tensor) -> Tensor:  # noqa: ARG002
        """The same for every noise level."""
        return torch.full_like(noise, self.last)
