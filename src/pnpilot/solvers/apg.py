"""Plug-and-play accelerated proximal gradient descent."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ..problem import Problem
from ..types import Denoise, Range
from .base import SIGMA, SOLVERS, TAU, Solver, scale


@SOLVERS.register("apg")
class AcceleratedProximalGradient(Solver):
    """Proximal gradient with momentum; the momentum β is a parameter like the others, not Nesterov's sequence."""

    params = {"sigma": SIGMA, "tau": TAU, "beta": Range(0.0, 2.0, 0.5)}
    needs = frozenset({"grad"})

    class State(NamedTuple):
        """The image, and the extrapolated image."""

        x: Tensor
        s: Tensor

    def init(self, problem: Problem) -> State:
        """x = s = x₀."""
        x = problem.x0()
        return self.State(x, x)

    def step(
        self, state: State, problem: Problem, denoise: Denoise, *, sigma: Tensor, tau: Tensor, beta: Tensor
    ) -> State:
        """x⁺ ← D(s − τ∇D(s), σ), s ← x⁺ + β(x⁺ − x)."""
        z = state.s - scale(tau, problem.grad(state.s))
        x = denoise(z, sigma)
        return self.State(x, x + scale(beta, x - state.x))
