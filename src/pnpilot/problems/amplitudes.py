"""Coded-diffraction amplitudes as a Problem."""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import require
from ..physics.coded_diffraction import CodedDiffraction, back, fields
from ..types import per_sample
from ._data import checked_data, energy, noise_of
from ._units import Hints, Units
from .base import PROBLEMS, Problem

TINY = 1e-8
"""Keeps the phase of a vanishing field defined."""
FIT = 60
"""Iterations of the fit that estimates the noise."""


@PROBLEMS.register("amplitudes")
class AmplitudeProblem(Problem):
    """Coded-diffraction amplitudes: D(x) = ½‖|Ax| − y‖² / J for J masks."""

    physics_type = CodedDiffraction
    offers = frozenset({"prox", "grad"})
    per_image = ("y", "masks", "measurements", "kept")

    def __init__(self, y: Tensor, units: Units, masks: Tensor) -> None:
        super().__init__(y, units)
        self.masks = masks
        # D is a mean over the masks: what counts is the number of amplitudes over the number of masks.
        self.measurements = torch.full((len(y),), y[0, 0].numel(), device=y.device)
        # An amplitude has the noise of one of the two parts of a field.
        self.kept, self.averaged = y.new_ones(len(y)), 2 * y.shape[1]

    @classmethod
    def of(cls, y: Tensor, physics: CodedDiffraction, hints: Hints) -> AmplitudeProblem:
        """Amplitudes in units of the peak."""
        y = checked_data(y, "the amplitudes", channels=physics.masks.shape[1])
        masks = physics.masks.to(y.device)
        sizes = f"the masks have shape {tuple(masks.shape)}, the amplitudes {tuple(y.shape)}: they must agree"
        require(masks.shape[-2:] == y.shape[-2:] and masks.shape[0] in (1, len(y)), sizes)
        require(bool((y >= 0).all()), "amplitudes cannot be negative")
        # The transform keeps energy, so the data tell the root mean square of the image; the peak is about twice that.
        estimate = 2 * y.square().mean((1, 2, 3), keepdim=True).sqrt()
        units = Units.of(hints, estimate, noise_of(physics), y.new_ones(len(y)))
        return cls(units.scale(y), units, masks.expand(y.shape[0], -1, -1, -1))

    def x0(self) -> Tensor:
        """All ones: with a few random masks no better start is needed."""
        return torch.ones_like(self.y[:, :1], dtype=self.masks.dtype)

    def D(self, x: Tensor) -> Tensor:
        """½‖|Ax| − y‖² / J."""
        return energy(fields(self.masks, x).abs() - self.y) / (2 * self.y.shape[1])

    def grad(self, x: Tensor) -> Tensor:
        """A†(Ax − y·Ax/|Ax|)."""
        field = fields(self.masks, x)
        amplitude = field.abs()
        return back(self.masks, field * (1 - self.y / amplitude.clamp_min(TINY)))

    def prox(self, v: Tensor, mu: Tensor, start: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """(A†(y·Av/|Av|) + μv)/(1 + μ): exact for the phases that Av has; the objective falls."""
        weight = per_sample(mu, v)
        return v - self.grad(v) / (1 + weight)

    def measured(self) -> list[Tensor]:
        """Amplitudes, and real and imaginary parts of the masks."""
        return [*self.y.split(1, 1), *self.masks.real.split(1, 1), *self.masks.imag.split(1, 1)]

    def estimated_noise(self) -> Tensor:
        """From the residual of a non-negative image, fitted without a prior, over its degrees of freedom."""
        x = self.x0()
        with torch.no_grad():
            for _ in range(FIT):
                x = (x - self.grad(x)).real.clamp_min(0).to(x.dtype)
        left = (fields(self.masks, x).abs() - self.y).square().mean((1, 2, 3))
        masks = self.y.shape[1]
        return (left * masks / max(masks - 1, 0.5)).sqrt()

    def export(self, image: Tensor) -> Tensor:
        """The image in the user's units."""
        return self.units.unscale(image)
