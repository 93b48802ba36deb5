"""Multi-coil Cartesian MRI as a Problem: coil maps, then a masked Fourier transform."""

from __future__ import annotations

from dataclasses import replace

import torch
from deepinv.physics import MultiCoilMRI, Physics
from torch import Tensor

from ..errors import require
from ..phase import middle
from ..types import named, per_sample, to_two_channels
from ._data import energy, noise_of
from ._kspace import doubts, measures_like, outer_noise, samples_of, unshifted
from ._least_squares import LeastSquares, Linear, opened, operator_norm
from ._units import Hints, Units
from .base import PROBLEMS

LOOK = 20
"""Side of the middle of k-space in which data are compared with what an image behind the coil maps would measure."""
MISSED = 0.005
"""Share of its energy that may be left over; maps that fit leave a few ten-thousandths."""


@PROBLEMS.register("multi-coil")
class MultiCoil(LeastSquares):
    """Multi-coil Cartesian MRI: D(x) = ½ Σ_c ‖MF(S_c x) − y_c‖², with k-space un-shifted, over the operator's norm."""

    physics_type = MultiCoilMRI
    per_image = (*LeastSquares.per_image, "mask", "maps", "start")

    def __init__(self, y: Tensor, units: Units, mask: Tensor, maps: Tensor, start: Tensor) -> None:
        super().__init__(y, units, _adjoint(mask * y, maps.conj()))
        self.mask, self.maps, self.start, self.axes = mask, maps, start, _varying(mask)
        self.measurements = (mask != 0).flatten(1).sum(1) * y.shape[1]
        self.kept = mask.square().flatten(1).mean(1) * energy(maps) / mask[0].numel()

    @classmethod
    def accepts(cls, physics: Physics) -> bool:
        """Cartesian slices: not volumes, and not the trajectories whose physics derives from the same class."""
        return measures_like(MultiCoilMRI, physics) and not physics.three_d

    @classmethod
    def of(cls, y: Tensor, physics: MultiCoilMRI, hints: Hints) -> MultiCoil:
        """The fast path: everything about centring is folded into mask and data once."""
        y, kspace, mask, gain = samples_of(y, physics, coils=True)
        maps, weights, kspace = _checked_maps(physics, y), torch.fft.ifftshift(mask, dim=(-2, -1)), unshifted(kspace)
        axes = _varying(weights)
        norm = operator_norm(_normal(weights, maps, axes), kspace[:, :1])
        maps, kspace = (value / per_sample(norm, value) for value in (maps, kspace))
        normal, back = _normal(weights, maps, axes), _adjoint(weights * kspace, maps.conj())
        units, start = opened(hints, noise_of(physics), outer_noise(kspace, weights), gain * norm, normal, back)
        # Real scans have a phase, and coils hide whether an image has none.
        units = replace(units, real=torch.full((len(y),), bool(hints.real)))
        problem = cls(units.scale(kspace), units, weights, maps, units.scale(start))
        problem.notes = [*doubts(y, mask), *_unexplained(problem)]
        return problem

    def x0(self) -> Tensor:
        """A smooth solution, complex."""
        return self.start

    def A(self, x: Tensor) -> Tensor:
        """MF(Sx)."""
        return self.mask * torch.fft.fft2(self.maps * x, norm="ortho")

    def A_adjoint(self, y: Tensor) -> Tensor:
        """Σ S*F⁻¹My."""
        return _adjoint(self.mask * y, self.maps.conj())

    def normal(self, x: Tensor) -> Tensor:
        """Σ S*F⁻¹M²F(Sx)."""
        return _normal(self.mask, self.maps, self.axes)(x)

    def prox(self, v: Tensor, mu: Tensor, start: Tensor | None = None) -> Tensor:
        """By conjugate gradients, with what AᴴA needs made once."""
        return self.solved(_normal(self.mask, self.maps, self.axes), v, mu, start)

    def export(self, image: Tensor) -> Tensor:
        """deepinv's two channels."""
        return to_two_channels(self.units.unscale(image))


def _varying(mask: Tensor) -> tuple[int, ...]:
    """The axes along which masks vary. Along others, where lines are measured whole, F and F⁻¹ cancel in AᴴA."""
    return tuple(axis for axis in (-2, -1) if not torch.equal(mask, mask.narrow(axis, 0, 1).expand_as(mask)))


def _normal(mask: Tensor, maps: Tensor, axes: tuple[int, ...]) -> Linear:
    """AᴴA."""
    weights, conjugate = mask.square().to(maps.dtype), maps.conj().resolve_conj()

    def normal(x: Tensor) -> Tensor:
        # In place where it can be: memory for all coils takes longer to get than to fill.
        images = maps * x
        if axes:
            kspace = torch.fft.fftn(images, dim=axes, norm="ortho")
            images = torch.fft.ifftn(kspace.mul_(weights), dim=axes, norm="ortho")
        else:
            images.mul_(weights)
        return images.mul_(conjugate).sum(1, keepdim=True)

    return normal


def _adjoint(kspace: Tensor, conjugate: Tensor) -> Tensor:
    """The coil images (B, coils, H, W) behind k-space, weighted by the conjugate maps and summed to (B, 1, H, W)."""
    return (conjugate * torch.fft.ifft2(kspace, norm="ortho")).sum(1, keepdim=True)


def _checked_maps(physics: MultiCoilMRI, y: Tensor) -> Tensor:
    maps = physics.coil_maps.to(y)
    sizes = f"the coil maps have shape {tuple(maps.shape)}, k-space {tuple(y.shape)}: they must agree"
    require(maps.shape[1:] == y.shape[1:] and maps.shape[0] in (1, len(y)), sizes)
    require(bool(torch.isfinite(maps).all()), "the coil maps hold NaN or infinite values")
    maps = maps.expand(len(y), -1, -1, -1)
    require(bool(maps.flatten(1).any(1).all()), "the coil maps are zero everywhere")
    return maps


def _unexplained(problem: MultiCoil) -> list[str]:
    """A warning where the start leaves much of the middle of k-space over: no image explains what maps miss."""
    window = torch.fft.ifftshift(middle(problem.y.shape[-2], problem.y.shape[-1], LOOK)).to(problem.mask)
    assert problem.units.sigma_n is not None
    noise = 2 * problem.units.sigma_n.square() * energy(window * (problem.mask != 0)) * problem.y.shape[1]
    left = energy(window * (problem.y - problem.A(problem.start))) - 2 * noise
    share = left / energy(window * problem.y).clamp_min(torch.finfo(noise.dtype).tiny)
    wrong = share > MISSED
    if not bool(wrong.any()):
        return []
    return [
        f"the coil maps do not explain {100 * share[wrong].max():.2g} % of the signal in the middle of k-space of "
        f"{named(wrong)}: they may be zero or wrong where there is signal (ESPIRiT has a crop threshold: lower it), or "
        "belong to other data"
    ]
