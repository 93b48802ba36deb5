"""ADMM on regularisation by denoising."""

from __future__ import annotations

from torch import Tensor

from ..problems import Problem
from ..types import Denoise, Range
from .base import MU, SIGMA, SOLVERS, Split, SplitSolver, scale


@SOLVERS.register("red-admm")
class REDADMM(SplitSolver):
    """Regularisation by denoising (RED) in ADMM: one fixed-point step on the regulariser λ/2 xᵀ(x − H_σ(x))."""

    reference = "Romano, Elad & Milanfar, SIAM J. Imaging Sci. 2017"
    priority = 50
    params = {"sigma": SIGMA, "mu": MU, "lam": Range(0.0, 2.0, 0.5, symbol="λ", search=(0.02, 2.0))}
    needs = frozenset({"prox"})

    def step(
        self, state: Split, problem: Problem, denoise: Denoise, *, sigma: Tensor, mu: Tensor, lam: Tensor
    ) -> Split:
        """x ← (λH_σ(x) + μ(z − u)) / (λ + μ), then the data step and the multiplier of ADMM."""
        x, z, u = state
        x = scale(1 / (lam + mu), scale(lam, denoise(x, sigma)) + scale(mu, z - u))
        z = problem.prox(x + u, mu, start=z)
        u = u + x - z
        return Split(x, z, u)
