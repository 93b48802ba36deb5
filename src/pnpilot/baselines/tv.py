"""Total variation, by deepinv."""

from __future__ import annotations

from typing import Any

import torch
from deepinv.optim import FISTA, L2, TVPrior
from deepinv.physics import LinearPhysics, Physics
from torch import Tensor

from ..errors import Incompatible
from ..problems import Hints, open_problem
from ..problems._data import noise_of
from ..problems._least_squares import operator_norm
from ..types import one_each, per_sample
from .base import BASELINES, Baseline

LEAST = 0.255 / 255
"""Noise levels under this count as this: without any there would be no regulariser."""


@BASELINES.register("tv")
class TotalVariation(Baseline):
    """Total variation (Rudin, Osher & Fatemi 1992) by deepinv's FISTA, weighted by the noise level."""

    reference = "Rudin, Osher & Fatemi, Physica D 1992; deepinv.optim"
    serves = frozenset({"csmri"})
    iterations = 50

    def __init__(self, weight: float | Tensor = 0.5, iterations: int | None = None) -> None:
        self.weight = weight
        """Weight of the total variation in units of the noise level, or one for each image; 0.5 did best on photographs
        and other slices."""
        if iterations is not None:
            self.iterations = iterations

    def made_with(self) -> Any:
        """Its weight and iterations."""
        return [self.weight, self.iterations]

    @torch.no_grad()
    def __call__(self, y: Tensor, physics: Physics) -> Tensor:
        """argmin ½‖Ax − y‖² + weight·σ_n·TV(x), for the operator and the data over the operator's norm."""
        sigma = noise_of(physics)
        if not isinstance(physics, LinearPhysics) or sigma is None:
            raise Incompatible("total variation needs a linear physics with a Gaussian noise level")
        norm = operator_norm(lambda x: physics.A_adjoint(physics.A(x)), physics.A_adjoint(y))
        scaled = LinearPhysics(
            A=lambda x: _over(physics.A(x), norm), A_adjoint=lambda data: _over(physics.A_adjoint(data), norm)
        )
        levels = one_each(sigma, y.real, "noise levels").clamp_min(LEAST) / norm
        solver = FISTA(
            data_fidelity=L2(),
            prior=TVPrior(def_crit=0.0, n_it_max=20),  # that criterion looks at the batch as a whole
            lambda_reg=[self.weight * levels.double()],  # a list of one for all iterations, with a weight per image
            stepsize=1.0,
            max_iter=self.iterations,
        )
        problem = open_problem(y, physics, Hints(peak=1.0, real=True))
        start = problem.export(problem.x0())  # from the adjoint, gaps would take thousands of iterations to fill
        return solver(_over(y, norm), scaled, init=(start, start))


def _over(values: Tensor, norm: Tensor) -> Tensor:
    return values / per_sample(norm, values)
