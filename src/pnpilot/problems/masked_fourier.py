"""Single-coil MRI as a Problem: a masked Fourier transform."""

from __future__ import annotations

from dataclasses import replace

import torch
from deepinv.physics import MRI, DynamicMRI, Physics
from torch import Tensor

from ..types import per_sample, to_two_channels
from ._data import energy, looks_non_negative, noise_of
from ._kspace import centred_ifft2, doubts, measures_like, mirrored, odd_noise, outer_noise, samples_of, unshifted
from ._least_squares import LeastSquares
from ._units import Hints, Units
from .base import PROBLEMS

ASYMMETRIC = 0.04
"""An image has a phase if more than this share of the energy of k-space, beyond the noise, breaks the symmetry of real
images; a constant phase of 0.14 gives as much."""


@PROBLEMS.register("masked-fourier")
class MaskedFourier(LeastSquares):
    """Single-coil MRI: D(x) = ½‖MFx − y‖², with k-space un-shifted: the zero frequency is the first entry."""

    physics_type = MRI
    per_image: tuple[str, ...] = (*LeastSquares.per_image, "mask")

    def __init__(self, y: Tensor, units: Units, mask: Tensor) -> None:
        super().__init__(y, units, torch.fft.ifft2(mask * y, norm="ortho"))
        self.mask = mask
        self.measurements = (mask != 0).flatten(1).sum(1)
        self.kept = mask.square().flatten(1).mean(1)

    @classmethod
    def accepts(cls, physics: Physics) -> bool:
        """Single images, not the volumes and films whose physics derive from the same class."""
        return measures_like(MRI, physics) and not isinstance(physics, DynamicMRI) and not physics.three_d

    @classmethod
    def of(cls, y: Tensor, physics: MRI, hints: Hints) -> MaskedFourier:
        """The fast path: everything about centring is folded into mask and data once."""
        y, kspace, mask, gain = samples_of(y, physics, coils=False)
        units = Units.of(hints, centred_ifft2(mask * kspace), noise_of(physics), gain)
        problem = cls(unshifted(units.scale(kspace)), units, torch.fft.ifftshift(mask, dim=(-2, -1)))
        shown = (odd_noise if hints.real else outer_noise)(problem.y, problem.mask)
        problem.notes = doubts(y, mask)
        problem.units = units.showing(shown)
        if hints.real is None:
            problem.units = replace(problem.units, real=problem.looks_real().cpu(), guessed=True)
        return problem

    def x0(self) -> Tensor:
        """The zero-filled image, complex."""
        return self.back

    def A(self, x: Tensor) -> Tensor:
        """MFx."""
        return self.mask * torch.fft.fft2(x, norm="ortho")

    def A_adjoint(self, y: Tensor) -> Tensor:
        """F⁻¹My."""
        return torch.fft.ifft2(self.mask * y, norm="ortho")

    def prox(self, v: Tensor, mu: Tensor, start: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Each measured sample of k-space is a weighted mean of v and the data; the rest is v's."""
        k = torch.fft.fft2(v, norm="ortho")
        gain = self.mask / (self.mask * self.mask + per_sample(mu, self.mask))
        return torch.fft.ifft2(k + gain * (self.y - self.mask * k), norm="ortho")

    def measured(self) -> list[Tensor]:
        """Real and imaginary part of the data, the zero-filled image, and the mask, centred."""
        y, mask = (torch.fft.fftshift(image, dim=(-2, -1)) for image in (self.y, self.mask))
        return [y.real, y.imag, self.x0().real, mask]

    def looks_real(self) -> Tensor:
        """Whether each image is real and non-negative (B,), judging by its data beyond the noise.

        k-space of a real image has y(−k) = y(k)* wherever both are sampled, and the zero-filled image of a non-negative
        one has little below zero.
        """
        variance = self.y.real.new_zeros(len(self)) if self.units.sigma_n is None else self.units.sigma_n.square()
        # Each sample is weighted like its mirror image, which makes a difference for masks other than 0 and 1.
        there, back = mirrored(self.mask) * self.y, self.mask * mirrored(self.y).conj()
        pairs = (self.mask != 0) & (mirrored(self.mask) != 0)
        noise = variance * (energy(self.mask * pairs) + energy(mirrored(self.mask) * pairs))
        chance = 3 * noise * (2 / pairs.flatten(1).sum(1).clamp_min(1)).sqrt()
        symmetric = energy(there - back) / 2 - noise - chance < ASYMMETRIC * energy(there)
        telling = energy(there) > 0.1 * energy(self.mask * self.y)
        return symmetric & telling & looks_non_negative(self.x0().real, variance * energy(self.mask))

    def export(self, image: Tensor) -> Tensor:
        """deepinv's two channels."""
        return to_two_channels(self.units.unscale(image))
