"""Photons counted behind any linear operator: Poisson noise, with or without read noise."""

from __future__ import annotations

from dataclasses import replace

import torch
from deepinv.physics import LinearPhysics, Physics, PoissonGaussianNoise, PoissonNoise
from deepinv.utils.mixins import MRIMixin
from torch import Tensor

from ..errors import BadInput, require
from ..physics.weighted import Weighted
from ..types import named, one_each, per_sample
from ._data import checked_data
from ._gain import estimated_gain
from ._least_squares import noise_like
from ._units import Hints
from .base import PROBLEMS
from .linear import LinearProblem

DARKEST = 0.3
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
        """Where noise is that of photons. It never is in k-space, whatever is declared."""
        photons = isinstance(physics.noise_model, PoissonNoise | PoissonGaussianNoise)
        return photons and super().accepts(physics) and not isinstance(physics, MRIMixin)

    @classmethod
    def of(cls, y: Tensor, physics: LinearPhysics, hints: Hints) -> LinearProblem:
        """A first look as if all samples were equally noisy; then each counts by the variance expected of it."""
        y = checked_data(y, "the measurement")
        model, told = physics.noise_model, hints.sigma_n
        sigma = one_each(getattr(model, "sigma", 0.0), y, "noise levels")
        gain = _gain(hints.gain, physics, y, sigma)
        if isinstance(model, PoissonNoise) and not model.normalize:  # counts
            y = y * per_sample(gain, y)
            told = told if told is None or isinstance(told, str) else one_each(told, y, "noise levels") * gain
        if told is not None:
            return LinearProblem.of(y, physics, replace(hints, sigma_n=told))
        mean = gain * y.flatten(1).mean(1) + sigma.square()
        dark = ~(mean > 0)
        require(not bool(dark.any()), f"data that are counted photons are positive; those of {named(dark)} are not")
        plain = LinearProblem.of(y, physics, replace(hints, sigma_n=mean.sqrt()))
        expected = physics.A(plain.export(plain.start)).clamp_min(0)
        variance = per_sample(gain, y) * expected + per_sample(sigma.square(), y)
        seen = plain.A(noise_like(plain.start)) != 0
        mean = (seen * variance).flatten(1).sum(1) / seen.flatten(1).sum(1)
        counted = torch.maximum(variance, DARKEST * per_sample(mean, y))
        weighted = Weighted(physics, counted.rsqrt())
        problem = super().of(weighted.weighted(y), weighted, hints)
        # Samples with less noise than they count as having add less to the distance of an image from its data.
        problem.measurements = (seen * variance / counted).flatten(1).sum(1)
        problem.notes = plain.notes
        return problem


def _gain(hint: float | Tensor | str | None, physics: LinearPhysics, y: Tensor, sigma: Tensor) -> Tensor:
    """The gain of each image (B,): what is told, or declared, or shows in data that form a picture."""
    if not isinstance(hint, str):
        gain = one_each(physics.noise_model.gain if hint is None else hint, y, "gains")
        require(bool((gain.isfinite() & (gain > 0)).all()), f"a gain must be a positive number, got {gain.tolist()}")
        return gain
    require(hint == "estimate", f"the gain must be a number, or 'estimate', got {hint!r}")
    require(
        getattr(physics.noise_model, "normalize", True),
        "the data are counts, whose variance is their mean: their gain sets the scale of images, and does not show",
    )
    whole = bool((physics.A(torch.ones_like(physics.A_adjoint(y))) != 0).all())
    require(y.ndim == 4 and whole, "the gain shows in data that form a picture without gaps; for others, give a number")
    found = [estimated_gain(*one).gain for one in zip(y, sigma.tolist(), strict=True)]
    gain = one_each(found, y, "gains")
    if bool((hidden := ~(gain > 0)).any()):
        raise BadInput(f"the gain of {named(hidden)} does not show in the data: give a number")
    return gain
