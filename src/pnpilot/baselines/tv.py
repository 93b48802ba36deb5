"""Total variation, by deepinv."""

from __future__ import annotations

import torch
from deepinv.optim import FISTA, L2, TVPrior
from deepinv.physics import LinearPhysics, Physics
from torch import Tensor

from ..errors import Incompatible
from ..types import one_each
from .base import BASELINES, Baseline


@BASELINES.register("tv")
class TotalVariation(Baseline):
    """Total variation (Rudin, Osher & Fatemi 1992) by deepinv's FISTA, weighted by the noise level."""

    reference = "Rudin, Osher & Fatemi, Physica D 1992; deepinv.optim"
    serves = frozenset({"csmri"})
    iterations = 50

    def __init__(self, weight: float = 0.5) -> None:
        self.weight = weight
        """Weight of the total variation in units of the noise level; 0.5 did best on photographs and other slices."""

    def __call__(self, y: Tensor, physics: Physics) -> Tensor:
        """argmin ½‖Ax − y‖² + weight·σ_n·TV(x)."""
        sigma = getattr(physics.noise_model, "sigma", None)
        if not isinstance(physics, LinearPhysics) or sigma is None:
            raise Incompatible("total variation needs a linear physics with a Gaussian noise level")
        levels = one_each(sigma, y.real, "noise levels")
        solver = FISTA(
            data_fidelity=L2(),
            prior=TVPrior(def_crit=0.0, n_it_max=20),  # that criterion looks at the batch as a whole
            lambda_reg=[self.weight * levels.double()],  # a list of one for all iterations, with a weight per image
            stepsize=1.0,
            max_iter=self.iterations,
        )
        with torch.no_grad():
            return solver(y, physics)
