"""Plug-and-play ADMM, Eqs. (3)-(5) of the paper."""

from __future__ import annotations

from torch import Tensor

from ..problems import Problem
from ..types import Denoise
from .base import MU, SIGMA, SOLVERS, Split, SplitSolver


@SOLVERS.register("admm")
class ADMM(SplitSolver):
    """Alternating direction method of multipliers: denoise, fit the data exactly, update the multiplier."""

    reference = (
        "Venkatakrishnan, Bouman & Wohlberg, GlobalSIP 2013; Chan, Wang & Elgendy, IEEE Trans. Comput. Imaging 2017"
    )
    priority = 0
    params = {"sigma": SIGMA, "mu": MU}
    needs = frozenset({"prox"})

    def step(self, state: Split, problem: Problem, denoise: Denoise, *, sigma: Tensor, mu: Tensor) -> Split:
        """One iteration."""
        _, z, u = state
        x = denoise(z - u, sigma)  # Eq. (3)
        z = problem.prox(x + u, mu, start=z)  # Eq. (4)
        u = u + x - z  # Eq. (5)
        return Split(x, z, u)
