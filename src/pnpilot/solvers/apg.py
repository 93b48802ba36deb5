"""Plug-and-play accelerated proximal gradient descent."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ..problems import Problem
from ..types import Denoise, Range
from .base import SIGMA, SOLVERS, TAU, Solver, scale


@SOLVERS.register("apg")
class AcceleratedProximalGradient(Solver):
    """Proximal gradient with momentum; the momentum β is a parameter like the others, not Nesterov's sequence."""

    reference = (
        "Beck & Teboulle, SIAM J. Imaging Sci. 2009; Kamilov, Mansour & Wohlberg, IEEE Signal Process. Lett. 2017"
    )
    priority = 40
    params = {"sigma": SIGMA, "tau": TAU, "beta": Range(0.0, 2.0, 0.5, symbol="β", search=(0.05, 2.0))}
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
        """x⁺ ← H_σ(s − τ∇D(s)), s ← x⁺ + β(x⁺ − x)."""
        z = state.s - scale(tau, problem.grad(state.s))
        x = denoise(z, sigma)
        return self.State(x, x + scale(beta, x - state.x))
