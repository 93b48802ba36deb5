"""Single-coil MRI as a Problem: a masked Fourier transform."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from deepinv.physics import MRI, DynamicMRI, Physics
from torch import Tensor

from ..errors import require
from ..types import per_sample, to_two_channels
from ._data import checked_data, energy, looks_non_negative, noise_of
from ._units import Hints, Units
from .base import PROBLEMS, Problem

ASYMMETRIC = 0.04
"""An image has a phase if more than this share of the energy of k-space, beyond the noise, breaks the symmetry of real
images; a constant phase of 0.14 gives as much."""


@PROBLEMS.register("masked-fourier")
class MaskedFourier(Problem):
    """Single-coil MRI: D(x) = ½‖MFx − y‖², with k-space un-shifted: the zero frequency is the first entry."""

    physics_type = MRI
    offers = frozenset({"prox", "grad", "linear"})
    per_image: tuple[str, ...] = ("y", "mask", "measurements")

    def __init__(self, y: Tensor, units: Units, mask: Tensor) -> None:
        super().__init__(y, units)
        self.mask = mask
        self.measurements = (mask != 0).flatten(1).sum(1)

    @classmethod
    def accepts(cls, physics: Physics) -> bool:
        """Single images, not the volumes and films whose physics derive from the same class."""
        return isinstance(physics, MRI) and not isinstance(physics, DynamicMRI) and not physics.three_d

    @classmethod
    def of(cls, y: Tensor, physics: MRI, hints: Hints) -> MaskedFourier:
        """The fast path: everything about centring is folded into mask and data once."""
        if isinstance(y, Tensor) and y.is_complex() and y.ndim == 4 and y.shape[1] == 1:
            y = to_two_channels(y)
        y = checked_data(y, "k-space", channels=2)
        mask, gain = _checked_mask(physics, y)
        kspace = torch.complex(y[:, :1], y[:, 1:]) / per_sample(gain, y) * (mask != 0)
        require(
            bool(kspace.flatten(1).any(1).all()),
            "k-space is zero wherever the mask samples it: do they belong together?",
        )
        units = Units.of(hints, _centred_ifft2(mask * kspace), noise_of(physics), gain)
        unshifted = torch.fft.fft2(_centred_ifft2(units.scale(kspace)), norm="ortho")
        problem = cls(unshifted, units, torch.fft.ifftshift(mask, dim=(-2, -1)))
        problem.know_noise()
        if hints.real is None:
            problem.units = replace(problem.units, real=problem.looks_real().cpu())
        return problem

    def x0(self) -> Tensor:
        """The zero-filled image, complex."""
        return self.A_adjoint(self.y)

    def A(self, x: Tensor) -> Tensor:
        """MFx."""
        return self.mask * torch.fft.fft2(x, norm="ortho")

    def A_adjoint(self, y: Tensor) -> Tensor:
        """F⁻¹My."""
        return torch.fft.ifft2(self.mask * y, norm="ortho")

    def D(self, x: Tensor) -> Tensor:
        """½‖MFx − y‖²."""
        return energy(self.A(x) - self.y) / 2

    def grad(self, x: Tensor) -> Tensor:
        """F⁻¹M(MFx − y)."""
        return self.A_adjoint(self.A(x) - self.y)

    def prox(self, v: Tensor, mu: Tensor) -> Tensor:
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
        noise = variance * (energy(self.mask * (back != 0)) + energy(mirrored(self.mask) * (there != 0)))
        chance = 3 * noise * (2 / (there != 0).flatten(1).sum(1).clamp_min(1)).sqrt()
        symmetric = energy(there - back) / 2 - noise - chance < ASYMMETRIC * energy(there)
        telling = energy(there) > 0.1 * energy(self.mask * self.y)

        return symmetric & telling & looks_non_negative(self.x0().real, variance * energy(self.mask))

    def estimated_noise(self) -> Tensor:
        """From what breaks the symmetry y(−k) = y(k)* of real images, at high frequencies, where a phase shows little.

        Where too few samples have mirror images, from the samples at high frequencies themselves.
        """
        height, width = self.y.shape[-2:]
        radius = torch.fft.fftfreq(height)[:, None].square() + torch.fft.fftfreq(width)[None].square()
        radius = radius.to(self.y.device)
        levels = []
        for y, mask in zip(self.y[:, 0], self.mask[:, 0] != 0, strict=True):
            outer = mask & (radius >= radius[mask].median())
            pairs = outer & mirrored(mask)
            odd = (y - mirrored(y).conj()) / math.sqrt(2)
            power = (odd[pairs] if pairs.sum() >= 32 else y[outer]).abs().square()
            # The power of complex noise of level σ in both parts is exponential with mean 2σ².
            levels.append((power.median() / (2 * math.log(2))).sqrt())
        return torch.stack(levels)

    def export(self, image: Tensor) -> Tensor:
        """deepinv's two channels."""
        return to_two_channels(self.units.unscale(image))


def mirrored(kspace: Tensor) -> Tensor:
    """k ↦ −k."""
    return torch.roll(torch.flip(kspace, (-2, -1)), (1, 1), (-2, -1))


def _checked_mask(physics: MRI, y: Tensor) -> tuple[Tensor, Tensor]:
    """The mask of each image (B, 1, H, W), of largest value one, and what it was divided by (B,)."""
    both = physics.mask.to(y)
    sizes = f"the mask has shape {tuple(both.shape)}, k-space {tuple(y.shape)}: they must agree"
    require(both.shape[-2:] == y.shape[-2:] and both.shape[0] in (1, len(y)), sizes)
    require(bool(torch.isfinite(both).all()), "the mask holds NaN or infinite values")
    require(torch.equal(both[:, :1], both[:, 1:]), "the mask must be the same for real and imaginary part")
    mask = both[:, :1].expand(len(y), -1, -1, -1)
    gain = mask.abs().amax((1, 2, 3))
    require(bool((gain > 0).all()), "the mask samples nothing: at least one entry must be non-zero")
    return mask / per_sample(gain, mask), gain


def _centred_ifft2(kspace: Tensor) -> Tensor:
    shifted = torch.fft.ifftshift(kspace, dim=(-2, -1))
    return torch.fft.fftshift(torch.fft.ifft2(shifted, norm="ortho"), dim=(-2, -1))
