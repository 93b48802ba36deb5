"""Any linear physics as a Problem: deepinv's `prox_l2` where it has a closed form, gradients otherwise."""

from __future__ import annotations

from dataclasses import replace

import torch
from deepinv.physics import DecomposablePhysics, Downsampling, LinearPhysics, Physics, ZeroNoise
from deepinv.utils.mixins import MRIMixin
from torch import Tensor

from ..errors import BadInput, first_line, require
from ..physics import divided, selected
from ..types import per_sample, to_two_channels
from ._data import checked_data, energy, looks_non_negative, noise_of
from ._units import Hints, Units
from .base import PROBLEMS, Problem

START_PENALTY = 1e-2
"""Weight of the ridge in the start of problems whose data step has a closed form."""


@PROBLEMS.register("linear")
class LinearProblem(Problem):
    """Any linear operator: D(x) = ½‖Ax − y‖², with A and y divided by ‖A‖."""

    physics_type = LinearPhysics
    per_image = ("y", "gain", "start", "measurements")

    def __init__(self, y: Tensor, units: Units, physics: LinearPhysics, gain: Tensor, start: Tensor) -> None:
        super().__init__(y, units)
        self.physics, self.gain, self.start = physics, gain, start
        self.offers = frozenset({"grad", "linear"} | ({"prox"} if has_closed_form(physics) else set()))
        self.measurements = (physics.A(_noise_like(start)) != 0).flatten(1).sum(1)
        self.divided = divided(physics, _noise_like(start))

    @classmethod
    def of(cls, y: Tensor, physics: LinearPhysics, hints: Hints) -> LinearProblem:
        """Look at the data, measure the operator, choose a start."""
        y = checked_data(y, "the measurement")
        try:
            adjoint = physics.A_adjoint(y)
            gain = operator_norm(physics, adjoint)
            start = _start(physics, y, gain)
        except (RuntimeError, ValueError, TypeError, IndexError, AttributeError) as error:
            reason = f"data of shape {tuple(y.shape)} do not fit the {type(physics).__name__}: {first_line(error)}"
            if any(buffer.dtype is torch.float64 for buffer in physics.buffers()):
                reason += "; data are taken in single precision, so call physics.float()"
            raise BadInput(reason) from error
        _check(physics, y, adjoint, start)
        # Fine detail looks like noise here: a physics without noise is taken at its word.
        declared = 0.0 if isinstance(physics.noise_model, ZeroNoise) else noise_of(physics)
        units = Units.of(hints, _inside(physics, start), declared, gain)
        if hints.real is None:
            units = replace(units, real=_looks_real(physics, y, gain, start, units).cpu())
        return cls(units.scale(y) / per_sample(gain, y), units, physics, gain, units.scale(start))

    def x0(self) -> Tensor:
        """Filtered back-projection, ridge solution or adjoint, whichever the operator has."""
        return _inside(self.physics, self.start)

    def A(self, x: Tensor) -> Tensor:
        """The operator over its norm."""
        y = self.physics.A(_outside(self.physics, x))
        return y / per_sample(self.gain, y)

    def A_adjoint(self, y: Tensor) -> Tensor:
        """Its adjoint."""
        adjoint = self.physics.A_adjoint(y)
        return _inside(self.physics, adjoint / per_sample(self.gain, adjoint))

    def grad(self, x: Tensor) -> Tensor:
        """Aᴴ(Ax − y)."""
        return self.A_adjoint(self.A(x) - self.y)

    def prox(self, v: Tensor, mu: Tensor) -> Tensor:
        """deepinv's closed form, whose γ is 1/(μ‖A‖²)."""
        gamma = per_sample(1 / (mu * self.gain.square()), v)  # (B,) would broadcast along the width there
        data = self.y * per_sample(self.gain, self.y)
        return _inside(self.physics, self.physics.prox_l2(_outside(self.physics, v), data, gamma=gamma))

    def D(self, x: Tensor) -> Tensor:
        """½‖Ax − y‖²."""
        return energy(self.A(x) - self.y) / 2

    def to(self, device: torch.device) -> LinearProblem:
        """The same problems on another device, with a physics of their own."""
        moved = super().to(device)
        assert isinstance(moved, LinearProblem)
        moved.physics = self.physics.clone().to(device)
        return moved

    def estimated_noise(self) -> Tensor | None:
        """As for any image; k-space is not an image."""
        return None if isinstance(self.physics, MRIMixin) else super().estimated_noise()

    def select(self, index: Tensor) -> LinearProblem:
        """Problems by position; parameters of the physics that differ between images follow."""
        chosen = super().select(index)
        assert isinstance(chosen, LinearProblem)
        chosen.physics = selected(self.physics, index, len(self)) if self.divided else self.physics
        return chosen

    def export(self, image: Tensor) -> Tensor:
        """deepinv's layout: two real channels for a complex image."""
        return _outside(self.physics, self.units.unscale(image))


def has_closed_form(physics: Physics) -> bool:
    """Whether `prox_l2` is exact and cheap: a known singular value decomposition, or circular super-resolution."""
    if isinstance(physics, Downsampling):
        return physics.padding == "circular" and physics.filter is not None
    return isinstance(physics, DecomposablePhysics)


def operator_norm(physics: LinearPhysics, like: Tensor, iterations: int = 100) -> Tensor:
    """‖A‖ for each image of a batch (B,), by power iteration from a fixed start until it no longer grows."""
    x, squared = _noise_like(like), like.real.new_zeros(like.shape[0])
    with torch.no_grad():
        for _ in range(iterations):
            length = x.flatten(1).norm(dim=1).clamp_min(torch.finfo(squared.dtype).tiny)
            x = physics.A_adjoint_A(x / per_sample(length, x))
            found = x.flatten(1).norm(dim=1)
            growing = found - squared > 5e-4 * found
            squared = torch.where(growing, found, squared)
            if not bool(growing.any()):
                break
    return squared.clamp_min(torch.finfo(squared.dtype).tiny).sqrt()


def _noise_like(image: Tensor) -> Tensor:
    one = torch.randn(image[:1].shape, generator=torch.Generator().manual_seed(0))
    return one.to(image).expand_as(image)


def _check(physics: LinearPhysics, y: Tensor, adjoint: Tensor, start: Tensor) -> None:
    name, given = type(physics).__name__, tuple(y.shape)
    require(adjoint.ndim == 4, f"images must be two-dimensional, these would have shape {tuple(adjoint.shape[2:])}")
    expected = tuple(physics.A(adjoint).shape)
    require(expected == given, f"data of shape {given} do not fit the {name}: it gives {expected}")
    seen = bool(adjoint.flatten(1).any(dim=1).all())
    require(seen, "the operator sees nothing of these data: are there zero samples in the mask?")
    finite = bool(torch.isfinite(start).all())
    require(finite, f"the {name} has NaN or infinite entries: look at its mask or kernel")


def _start(physics: LinearPhysics, y: Tensor, gain: Tensor) -> Tensor:
    """Filtered back-projection, ridge solution or scaled adjoint; each is linear in the data."""
    with torch.no_grad():
        if hasattr(physics, "fbp"):
            return physics.fbp(y)
        adjoint = physics.A_adjoint(y)
        squared = per_sample(gain.square(), adjoint)
        if has_closed_form(physics) and not isinstance(physics, MRIMixin):
            return physics.prox_l2(torch.zeros_like(adjoint), y, gamma=1 / (START_PENALTY * squared))
        return adjoint / squared


def _looks_real(physics: LinearPhysics, y: Tensor, gain: Tensor, start: Tensor, units: Units) -> Tensor:
    """Whether each image (B,) is real and non-negative, judging by its start; MR images never count as real."""
    if isinstance(physics, MRIMixin) or start.is_complex():
        return torch.zeros(len(y), dtype=torch.bool)
    if not (has_closed_form(physics) or hasattr(physics, "fbp")):
        # The adjoint of an operator that mixes pixels is no picture: it only shows whether an image is mostly negative.
        return energy(start.clamp_max(0)) < energy(start) / 2
    level = torch.zeros_like(gain) if units.sigma_n is None else units.sigma_n * units.peak * gain
    return looks_non_negative(start, energy(_start(physics, per_sample(level, y) * _noise_like(y), gain)))


def _inside(physics: Physics, image: Tensor) -> Tensor:
    return torch.complex(image[:, :1], image[:, 1:]) if isinstance(physics, MRIMixin) else image


def _outside(physics: Physics, image: Tensor) -> Tensor:
    return to_two_channels(image) if isinstance(physics, MRIMixin) else image
