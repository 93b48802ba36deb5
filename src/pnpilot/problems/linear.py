"""Any linear physics as a Problem: deepinv's `prox_l2` where it has a closed form, conjugate gradients otherwise."""

from __future__ import annotations

from dataclasses import replace

import torch
from deepinv.physics import DecomposablePhysics, Downsampling, LinearPhysics, Physics
from deepinv.utils.mixins import MRIMixin
from torch import Tensor

from ..errors import BadInput, PnPilotError, first_line, require
from ..physics import copied, divided, selected
from ..types import per_sample, ramp, to_two_channels
from ._adjoint import not_an_adjoint
from ._data import UNFIT, checked_data, energy, ignored, looks_non_negative, noise_in_picture, noise_of
from ._least_squares import START_LIMIT, LeastSquares, Linear, noise_like, opened, operator_norm, smooth_start
from ._units import Hints, Units
from .base import LEAST_NOISE, PROBLEMS

UNEVEN, WHOLE = (0.7, 0.5), (0.6, 0.8)
"""Where an operator begins to count as a blur, and where it does so fully: tr((AᴴA)²)/tr(AᴴA), which is 1 if all that
is measured is measured alike, and the share of an image that is measured."""
EXACT = 1e-3
"""Relative error up to which a closed form counts as one."""


@PROBLEMS.register("linear")
class LinearProblem(LeastSquares):
    """Any linear operator: D(x) = ½‖Ax − y‖², with A and y divided by ‖A‖."""

    physics_type = LinearPhysics
    per_image = (*LeastSquares.per_image, "gain", "start", "blurred")

    def __init__(
        self, y: Tensor, units: Units, back: Tensor, physics: LinearPhysics, gain: Tensor, start: Tensor
    ) -> None:
        super().__init__(y, units, back)
        self.physics, self.gain, self.start = physics, gain, start
        probe = _outside(physics, noise_like(start))
        seen = physics.A(probe)
        self.measurements = (seen != 0).flatten(1).sum(1)
        self.kept = energy(seen) / energy(probe) / gain.square()
        evenness = energy(physics.A_adjoint(seen)) / energy(seen) / gain.square()
        self.blurred = ramp(evenness, *UNEVEN) * ramp(self.measurements / start[0].numel(), *WHOLE)
        self.divided = divided(physics, probe)
        self.closed_form = has_closed_form(physics) and self._closed_form_holds()

    @classmethod
    def of(cls, y: Tensor, physics: LinearPhysics, hints: Hints) -> LinearProblem:
        """Look at the data, measure the operator, choose a start."""
        y = checked_data(y, "the measurement")
        try:
            adjoint = physics.A_adjoint(y)
            gain = operator_norm(lambda x: physics.A_adjoint(physics.A(x)), adjoint)
            _check(physics, y, adjoint)
            blind = physics.A(noise_like(adjoint)) == 0
            unused, y = y * blind, y.masked_fill(blind, 0)
            back = _inside(physics, adjoint / per_sample(gain.square(), adjoint))
            # k-space is not a picture.
            shown = torch.full_like(gain, torch.nan) if isinstance(physics, MRIMixin) else noise_in_picture(y)
            units, start = opened(
                hints, noise_of(physics), shown / gain, gain, _normal(physics, gain), back, _limit(physics)
            )
        except PnPilotError:
            raise
        except UNFIT as error:
            reason = f"data of shape {tuple(y.shape)} do not fit the {type(physics).__name__}: {first_line(error)}"
            if any(buffer.dtype is torch.float64 for buffer in physics.buffers()):
                reason += "; data are taken in single precision, so call physics.float()"
            raise BadInput(reason) from error
        name = type(physics).__name__
        require(
            bool(torch.isfinite(start).all()), f"the {name} has NaN or infinite entries: look at its mask or kernel"
        )
        if hints.real is None:
            units = replace(units, real=_looks_real(physics, y, gain, start, units).cpu(), guessed=True)
        y, back, start = units.scale(y) / per_sample(gain, y), units.scale(back), units.scale(start)
        problem = cls(y, units, back, physics, gain, start)
        wrong = not_an_adjoint(physics, problem.A, problem.A_adjoint, start)
        level = problem.noise_unit().nan_to_num(nan=LEAST_NOISE) * units.peak * gain
        problem.notes = [*wrong, *ignored(unused, blind, level, name)]
        return problem

    def x0(self) -> Tensor:
        """A smooth solution."""
        return self.start

    def A(self, x: Tensor) -> Tensor:
        """The operator over its norm."""
        y = self.physics.A(_outside(self.physics, x))
        return y / per_sample(self.gain, y)

    def A_adjoint(self, y: Tensor) -> Tensor:
        """Its adjoint."""
        adjoint = self.physics.A_adjoint(y)
        return _inside(self.physics, adjoint / per_sample(self.gain, adjoint))

    def prox(self, v: Tensor, mu: Tensor, start: Tensor | None = None) -> Tensor:
        """deepinv's closed form, whose γ is 1/(μ‖A‖²), or conjugate gradients."""
        return self._in_closed_form(v, mu) if self.closed_form else super().prox(v, mu, start)

    def _in_closed_form(self, v: Tensor, mu: Tensor) -> Tensor:
        gamma = per_sample(1 / (mu * self.gain.square()), v)  # (B,) would broadcast along the width there
        data = self.y * per_sample(self.gain, self.y)
        return _inside(self.physics, self.physics.prox_l2(_outside(self.physics, v), data, gamma=gamma))

    def _closed_form_holds(self) -> bool:
        """Whether it solves what it should, tried on noise.

        A physics that measures in its own way inherits the form of another, and some forms do not take all shapes.
        """
        v, mu = noise_like(self.start), torch.full_like(self.gain, 0.01)
        try:
            z = self._in_closed_form(v, mu)
        except UNFIT:
            return False
        weight = per_sample(mu, v)
        wanted = self.back + weight * v
        wrong = self.normal(z) + weight * z - wanted
        return bool((energy(wrong) <= EXACT**2 * energy(wanted)).all())

    def to(self, device: torch.device) -> LinearProblem:
        """The same problems on another device, with a physics of their own."""
        moved = super().to(device)
        assert isinstance(moved, LinearProblem)
        moved.physics = copied(self.physics).to(device)
        return moved

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
    """Whether it may have one: a known singular value decomposition, or circular super-resolution."""
    if isinstance(physics, Downsampling):
        return physics.padding == "circular" and physics.filter is not None
    return isinstance(physics, DecomposablePhysics)


def _normal(physics: LinearPhysics, gain: Tensor) -> Linear:
    def normal(x: Tensor) -> Tensor:
        # deepinv's short cut for AᴴA is inherited by physics that measure in their own way.
        found = _inside(physics, physics.A_adjoint(physics.A(_outside(physics, x))))
        return found / per_sample(gain.square(), found)

    return normal


def _check(physics: LinearPhysics, y: Tensor, adjoint: Tensor) -> None:
    name, given = type(physics).__name__, tuple(y.shape)
    wrong = f"images must be two-dimensional, these would have shape {tuple(adjoint.shape[2:])}: give slices as a batch"
    require(adjoint.ndim == 4, wrong)
    expected = tuple(physics.A(adjoint).shape)
    require(expected == given, f"data of shape {given} do not fit the {name}: it gives {expected}")
    seen = bool(adjoint.flatten(1).any(dim=1).all())
    require(seen, "the operator sees nothing of these data: are there zero samples in the mask?")


def _looks_real(physics: LinearPhysics, y: Tensor, gain: Tensor, start: Tensor, units: Units) -> Tensor:
    """Whether each image (B,) is real and non-negative, judging by its start; MR images never count as real."""
    if start.is_complex():
        return torch.zeros(len(y), dtype=torch.bool)
    assert units.sigma_n is not None
    level = units.sigma_n.nan_to_num(nan=0.0)
    noise = per_sample(level * units.peak, y) * noise_like(y)
    back = physics.A_adjoint(noise) / per_sample(gain, start)
    grain = smooth_start(_normal(physics, gain), back, level, _limit(physics))
    return looks_non_negative(start, energy(grain))


def _limit(physics: Physics) -> int:
    """How many iterations a start may take: a physics for which each is long may say that fewer will do."""
    return getattr(physics, "start_iterations", START_LIMIT)


def _inside(physics: Physics, image: Tensor) -> Tensor:
    return torch.complex(image[:, :1], image[:, 1:]) if isinstance(physics, MRIMixin) else image


def _outside(physics: Physics, image: Tensor) -> Tensor:
    return to_two_channels(image) if isinstance(physics, MRIMixin) else image
