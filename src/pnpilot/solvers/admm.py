"""Plug-and-play ADMM, Eqs. (3)-(5) of the paper."""

from __future__ import annotations

from torch import Tensor

from ..problems import Problem
from ..types import Denoise
from .base import MEMORY, MU, SIGMA, SOLVERS, Split, SplitSolver, scale


@SOLVERS.register("admm")
class ADMM(SplitSolver):
    """Alternating direction method of multipliers: denoise, fit the data exactly, update the multiplier.

    A multiplier that forgets, ρ < 1, changes what iterations lead to: with constants, and D quadratic, H_σ then sees x
    less (2 − ρ)/(1 − ρ) · (AᴴA + μ′)⁻¹∇D(x) with μ′ = μ(2 − ρ)/(1 − ρ), in place of x − ∇D(x)/μ. That evens out what is
    measured strongly and weakly, as blurs do, and with it the noise that the denoiser sees.
    """

    reference = (
        "Venkatakrishnan, Bouman & Wohlberg, GlobalSIP 2013; Chan, Wang & Elgendy, IEEE Trans. Comput. Imaging 2017"
    )
    priority = 0
    params = {"sigma": SIGMA, "mu": MU, "memory": MEMORY}
    needs = frozenset({"prox"})

    def step(
        self, state: Split, problem: Problem, denoise: Denoise, *, sigma: Tensor, mu: Tensor, memory: Tensor
    ) -> Split:
        """One iteration."""
        _, z, u = state
        x = denoise(z - u, sigma)  # Eq. (3)
        z = problem.prox(x + u, mu, start=z)  # Eq. (4)
        u = scale(memory, u) + x - z  # Eq. (5), where memory is 1
        return Split(x, z, u)
