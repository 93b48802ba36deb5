"""Plug-and-play proximal gradient descent."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ..problems import Problem
from ..types import Denoise
from .base import SIGMA, SOLVERS, TAU, Solver, scale


@SOLVERS.register("pg")
class ProximalGradient(Solver):
    """Proximal gradient (forward-backward splitting): a gradient step on the data, then denoise."""

    reference = (
        "Combettes & Wajs, Multiscale Model. Simul. 2005; Kamilov, Mansour & Wohlberg, IEEE Signal Process. Lett. 2017"
    )
    priority = 30
    params = {"sigma": SIGMA, "tau": TAU}
    needs = frozenset({"grad"})

    class State(NamedTuple):
        """The image."""

        x: Tensor

    def init(self, problem: Problem) -> State:
        """x = x₀."""
        return self.State(problem.x0())

    def step(self, state: State, problem: Problem, denoise: Denoise, *, sigma: Tensor, tau: Tensor) -> State:
        """x ← H_σ(x − τ∇D(x))."""
        z = state.x - scale(tau, problem.grad(state.x))
        return self.State(denoise(z, sigma))
