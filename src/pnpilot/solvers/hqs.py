"""Plug-and-play half-quadratic splitting."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ..problems import Problem
from ..types import Denoise
from .base import MU, SIGMA, SOLVERS, Solver


@SOLVERS.register("hqs")
class HQS(Solver):
    """Half-quadratic splitting: denoise, fit the data exactly."""

    reference = "Zhang, Zuo, Gu & Zhang, CVPR 2017"
    priority = 20
    params = {"sigma": SIGMA, "mu": MU}
    needs = frozenset({"prox"})

    class State(NamedTuple):
        """Denoised image, data-consistent image."""

        x: Tensor
        z: Tensor

    def init(self, problem: Problem) -> State:
        """x = z = x₀."""
        x = problem.x0()
        return self.State(x, x)

    def step(self, state: State, problem: Problem, denoise: Denoise, *, sigma: Tensor, mu: Tensor) -> State:
        """x ← H_σ(z), z ← prox_{D/μ}(x)."""
        x = denoise(state.z, sigma)
        return self.State(x, problem.prox(x, mu, start=state.z))
