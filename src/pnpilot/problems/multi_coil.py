"""Multi-coil Cartesian MRI as a Problem: coil maps, then a masked Fourier transform."""

from __future__ import annotations

from dataclasses import replace

import torch
from deepinv.physics import MultiCoilMRI, Physics
from torch import Tensor

from ..errors import require
from ..phase import middle
from ..physics import Sense
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
    """Multi-coil Cartesian MRI: D(x) = ½ Σ_c ‖MF(S_c x) − y_c‖², with k-space un-shifted, over the operator's norm.

    With several sets of maps there is an image for each, and the coils see their sum. Where the physics says so, the
    imaginary part is held near zero: D(x) has λ/2 ‖Im x‖² besides.
    """

    physics_type = MultiCoilMRI
    per_image = (*LeastSquares.per_image, "mask", "maps", "start", "held")

    def __init__(self, y: Tensor, units: Units, mask: Tensor, maps: Tensor, start: Tensor, held: Tensor) -> None:
        super().__init__(y, units, _adjoint(mask * y, maps.conj()))
        self.mask, self.maps, self.start, self.axes = mask, maps, start, _varying(mask)
        self.held, self.holds = held, bool(held.any())
        self.measurements = (mask != 0).flatten(1).sum(1) * y.shape[1]
        # The strongest set counts: there is little behind the others.
        through = maps.abs().square().sum((-3, -2, -1)).amax(1) / mask[0].numel()
        self.kept = mask.square().flatten(1).mean(1) * through

    @classmethod
    def accepts(cls, physics: Physics) -> bool:
        """Cartesian slices: not volumes, and not the trajectories whose physics derives from the same class."""
        return (measures_like(MultiCoilMRI, physics) or isinstance(physics, Sense)) and not physics.three_d

    @classmethod
    def of(cls, y: Tensor, physics: MultiCoilMRI, hints: Hints) -> MultiCoil:
        """The fast path: everything about centring is folded into mask and data once."""
        y, kspace, mask, gain = samples_of(y, physics, coils=True)
        maps, weights, kspace = _checked_maps(physics, y), torch.fft.ifftshift(mask, dim=(-2, -1)), unshifted(kspace)
        axes = _varying(weights)
        held = _held(physics, y)
        steady = held if bool(held.any()) else None
        norm = operator_norm(_normal(weights, maps, axes), kspace[:, : maps.shape[1]])
        maps, kspace = (value / per_sample(norm, value) for value in (maps, kspace))
        normal, back = _normal(weights, maps, axes, steady), _adjoint(weights * kspace, maps.conj())
        units, start = opened(hints, noise_of(physics), outer_noise(kspace, weights), gain * norm, normal, back)
        # Real scans have a phase, and coils hide whether an image has none.
        units = replace(units, real=torch.full((len(y),), bool(hints.real)))
        problem = cls(units.scale(kspace), units, weights, maps, units.scale(start), held)
        problem.notes = [*doubts(y, mask), *_unexplained(problem)]
        return problem

    def x0(self) -> Tensor:
        """A smooth solution, complex."""
        return self.start

    def D(self, x: Tensor) -> Tensor:
        """½‖Ax − y‖² + λ/2 ‖Im x‖²."""
        return self.misfit(x) + (self.held / 2 * energy(x.imag) if self.holds and x.is_complex() else 0)

    def misfit(self, x: Tensor) -> Tensor:
        """½‖Ax − y‖²."""
        return super().D(x)

    def A(self, x: Tensor) -> Tensor:
        """MF(Sx)."""
        return self.mask * torch.fft.fft2(_behind(self.maps, x), norm="ortho")

    def A_adjoint(self, y: Tensor) -> Tensor:
        """Σ S*F⁻¹My."""
        return _adjoint(self.mask * y, self.maps.conj())

    def normal(self, x: Tensor) -> Tensor:
        """Σ S*F⁻¹M²F(Sx), and λ·i·Im x."""
        return _normal(self.mask, self.maps, self.axes, self.held if self.holds else None)(x)

    def prox(self, v: Tensor, mu: Tensor, start: Tensor | None = None) -> Tensor:
        """By conjugate gradients, with what AᴴA needs made once."""
        normal = _normal(self.mask, self.maps, self.axes, self.held if self.holds else None)
        return self.solved(normal, v, mu, start)

    def export(self, image: Tensor) -> Tensor:
        """deepinv's two channels."""
        return to_two_channels(self.units.unscale(image))


def _varying(mask: Tensor) -> tuple[int, ...]:
    """The axes along which masks vary. Along others, where lines are measured whole, F and F⁻¹ cancel in AᴴA."""
    return tuple(axis for axis in (-2, -1) if not torch.equal(mask, mask.narrow(axis, 0, 1).expand_as(mask)))


def _normal(mask: Tensor, maps: Tensor, axes: tuple[int, ...], held: Tensor | None = None) -> Linear:
    """AᴴA."""
    weights, conjugate = mask.square().to(maps.dtype), maps.conj().resolve_conj()

    def normal(x: Tensor) -> Tensor:
        # In place where it can be: memory for all coils takes longer to get than to fill.
        images = _behind(maps, x)
        if axes:
            kspace = torch.fft.fftn(images, dim=axes, norm="ortho")
            images = torch.fft.ifftn(kspace.mul_(weights), dim=axes, norm="ortho")
        else:
            images.mul_(weights)
        if conjugate.shape[1] == 1:
            found = images.mul_(conjugate[:, 0]).sum(1, keepdim=True)
        else:
            found = (conjugate * images[:, None]).sum(2)
        return found if held is None else found + 1j * per_sample(held, found) * _imaginary(found, x)

    return normal


def _imaginary(found: Tensor, x: Tensor) -> Tensor:
    return x.imag if x.is_complex() else torch.zeros_like(found.real)


def _behind(maps: Tensor, x: Tensor) -> Tensor:
    """What the coils see (B, coils, H, W) of the images (B, sets, H, W)."""
    images = maps * x[:, :, None]
    return images[:, 0] if maps.shape[1] == 1 else images.sum(1)


def _adjoint(kspace: Tensor, conjugate: Tensor) -> Tensor:
    """The coil images (B, coils, H, W) behind k-space, weighted by the conjugate maps and summed to (B, sets, H, W)."""
    return (conjugate * torch.fft.ifft2(kspace, norm="ortho")[:, None]).sum(2)


def _held(physics: MultiCoilMRI, y: Tensor) -> Tensor:
    """λ of each image (B,)."""
    held = physics.held if isinstance(physics, Sense) else torch.zeros(1)
    require(held.shape[0] in (1, len(y)), f"{held.shape[0]} weights of the phase for {len(y)} images")
    return held.to(y.real).expand(len(y))


def _checked_maps(physics: MultiCoilMRI, y: Tensor) -> Tensor:
    maps = physics.coil_maps.to(y)
    maps = maps if maps.ndim == 5 else maps[:, None]
    sizes = f"the coil maps have shape {tuple(maps.shape)}, k-space {tuple(y.shape)}: they must agree"
    require(maps.shape[2:] == y.shape[1:] and maps.shape[0] in (1, len(y)), sizes)
    require(bool(torch.isfinite(maps).all()), "the coil maps hold NaN or infinite values")
    maps = maps.expand(len(y), *maps.shape[1:])
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
