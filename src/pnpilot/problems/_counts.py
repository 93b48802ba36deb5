"""Data that are counted photons: in the units of images, with the gain and read noise that tell their variance."""

from __future__ import annotations

from typing import NamedTuple

import torch
from deepinv.physics import LinearPhysics, Physics, PoissonGaussianNoise, PoissonNoise
from deepinv.utils.mixins import MRIMixin
from torch import Tensor

from ..errors import BadInput, require
from ..physics.stacked import SideBySide
from ..types import named, one_each, per_sample
from ._data import checked_data
from ._gain import estimated_gain


class Counted(NamedTuple):
    """Data y of variance gain·Ax + σ², whose gain and σ are as many as images (B, 1, …), or as numbers."""

    y: Tensor
    gain: Tensor
    sigma: Tensor
    scale: Tensor
    """What the data were multiplied by (B,): the gain, if they came as counts."""

    def level(self) -> Tensor:
        """The noise level of each image (B,), as if all its samples were equally noisy."""
        mean = (self.gain * self.y + self.sigma.square()).flatten(1).mean(1)
        dark = ~(mean > 0)
        require(not bool(dark.any()), f"data that are counted photons are positive; those of {named(dark)} are not")
        return mean.sqrt()


def counts_photons(physics: Physics) -> bool:
    """Whether noise is that of photons. It never is in k-space, whatever is declared."""
    photons = isinstance(physics.noise_model, PoissonNoise | PoissonGaussianNoise)
    return photons and not isinstance(physics, MRIMixin)


def counted(y: Tensor, physics: LinearPhysics, hint: float | Tensor | str | None) -> Counted:
    """The data of a physics that counts photons, and their noise; the hint is of the gain."""
    y, model = checked_data(y, "the measurement"), physics.noise_model
    if isinstance(physics, SideBySide):
        return Counted(y, model.gain, model.sigma, torch.ones_like(y[:, 0]))
    sigma = one_each(getattr(model, "sigma", 0.0), y, "noise levels")
    gain = _gain(hint, physics, y, sigma)
    scale = gain if isinstance(model, PoissonNoise) and not model.normalize else torch.ones_like(gain)
    return Counted(y * per_sample(scale, y), per_sample(gain, y), per_sample(sigma, y), scale)


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
