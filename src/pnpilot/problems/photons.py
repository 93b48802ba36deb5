"""Photons counted behind any linear operator, or several: Poisson noise, with or without read noise."""

from __future__ import annotations

from dataclasses import replace

import torch
from deepinv.physics import LinearPhysics, Physics
from torch import Tensor

from ..physics.weighted import Weighted
from ..types import one_each, per_sample
from ._counts import counted, counts_photons
from ._least_squares import noise_like
from ._units import Hints
from .base import PROBLEMS
from .linear import LinearProblem

LEAST_VARIANCE = 0.3
"""No sample counts as having less than this share of the mean variance: solvers and schedules would follow the few
that are known best."""


@PROBLEMS.register("photons")
class PhotonLimited(LinearProblem):
    """Any linear operator with Poisson noise: D(x) = ½‖W(Ax − y)‖², where W⁻² is the variance gain·Ax + σ² of the data.

    The variance is that of a smooth start: by the data themselves, dark samples would be believed too much. A noise
    level that is told is one for all samples, and makes this an ordinary linear problem.
    """

    @classmethod
    def accepts(cls, physics: Physics) -> bool:
        """Where noise is that of photons; or of both, side by side."""
        return counts_photons(physics) and super().accepts(physics)

    @classmethod
    def of(cls, y: Tensor, physics: LinearPhysics, hints: Hints) -> LinearProblem:
        """A first look as if all samples were equally noisy; then each counts by the variance expected of it."""
        photons, told = counted(y, physics, hints.gain), hints.sigma_n
        y = photons.y
        if told is not None:
            level = told if isinstance(told, str) else one_each(told, y, "noise levels") * photons.scale
            return LinearProblem.of(y, physics, replace(hints, sigma_n=level))
        plain = LinearProblem.of(y, physics, replace(hints, sigma_n=photons.level()))
        expected = physics.A(plain.export(plain.start)).clamp_min(0)
        variance = photons.gain * expected + photons.sigma.square()
        seen = plain.A(noise_like(plain.start)) != 0
        mean = (seen * variance).flatten(1).sum(1) / seen.flatten(1).sum(1)
        believed = torch.maximum(variance, LEAST_VARIANCE * per_sample(mean, y))
        weighted = Weighted(physics, believed.rsqrt())
        problem = super().of(weighted.weighted(y), weighted, hints)
        # Samples with less noise than they count as having add less to the distance of an image from its data.
        problem.measurements = (seen * variance / believed).flatten(1).sum(1)
        problem.notes, problem.blurred = plain.notes, plain.blurred  # weights make no blur, and no gaps
        return problem
