"""Plug-and-play ADMM whose data step is one gradient step: phase retrieval, and any operator with a gradient."""

from __future__ import annotations

from torch import Tensor

from ..problems import Problem
from ..types import Denoise
from .base import MU, SIGMA, SOLVERS, TAU, Split, SplitSolver, scale

STABLE = 0.5
"""Largest μ for schedules: with τ = 1 the gradient step diverges near μ = 1, where τ(1 + μ) = 2."""


@SOLVERS.register("inexact-admm")
class InexactADMM(SplitSolver):
    """ADMM with a gradient step in place of the exact data step: any operator that has a gradient."""

    reference = "Wei, Aviles-Rivero, Liang, Fu, Schönlieb & Huang, ICML 2020"
    priority = 10
    params = {"sigma": SIGMA, "mu": MU._replace(cautious=STABLE), "tau": TAU}
    needs = frozenset({"grad"})

    def step(
        self, state: Split, problem: Problem, denoise: Denoise, *, sigma: Tensor, mu: Tensor, tau: Tensor
    ) -> Split:
        """x ← H_σ(z − u), z ← z − τ(∇D(z) + μ(z − x − u)), u ← u + x − z."""
        _, z, u = state
        x = denoise(z - u, sigma)
        z = z - scale(tau, problem.grad(z) + scale(mu, z - (x + u)))
        u = u + x - z
        return Split(x, z, u)
