"""What a problem is to a solver: a start, a data step, and how far an image is from its data; nothing of the prior."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from deepinv.physics import Physics
from torch import Tensor

from ..errors import Incompatible, require
from ..registry import Registry
from ..types import named
from ._plain import parts_of_physics, plain
from ._units import Hints, Units

LEAST_NOISE = 1e-4
"""Smallest noise level that distances are measured in, in units of the peak."""


class Problem(ABC):
    """A batch of inverse problems with their data, in units of each image's peak.

    Linear operators are normalised, so that a penalty or a step size means the same whatever the operator. Complex
    images are complex tensors.
    """

    name: str
    physics_type: type[Physics]
    """The deepinv physics that it is opened from; subclasses included."""
    offers: frozenset[str]
    """What a solver may ask for: "prox", "grad", "linear" (A, A_adjoint)."""
    per_image: tuple[str, ...] = ("y",)
    """Names of the attributes whose first axis is the batch."""
    made_from: type[Physics] | None = None
    """The type of the physics that it was opened from."""
    notes: Sequence[str] = ()
    """What looked wrong about the data when it was opened."""
    measurements: Tensor
    """(B,): how many samples were measured; a complex one is two numbers."""
    kept: Tensor
    """(B,): the share of the energy of white noise that AᴴA lets through, the mean of its diagonal."""
    blurred: Tensor | float = 0.0
    """How far the operator is a blur, from 0 to 1: it measures all of an image, but unevenly. A tensor (B,) is also
    named in `per_image`."""
    averaged: int = 1
    """Over how many measurements of the whole image D is a mean: their noise counts for less."""

    def __init__(self, y: Tensor, units: Units) -> None:
        self.y, self.units = y, units

    @classmethod
    def accepts(cls, physics: Physics) -> bool:
        """Whether it can be opened from this physics: by default, if that is of its type."""
        return isinstance(physics, cls.physics_type)

    @classmethod
    @abstractmethod
    def of(cls, y: Tensor, physics: Physics, hints: Hints) -> Problem:
        """The problem behind data and physics; refuses, with a reason, what does not fit together."""

    @abstractmethod
    def x0(self) -> Tensor:
        """The image to start from (B, C, H, W)."""

    @abstractmethod
    def D(self, x: Tensor) -> Tensor:
        """The data term of each image (B,): half the squared distance between what it would measure and the data."""

    def prox(self, v: Tensor, mu: Tensor, start: Tensor | None = None) -> Tensor:
        """argmin_z D(z) + μ/2 ‖z − v‖², with mu (B,); `start` is a z that is not far from it, if one is known."""
        raise NotImplementedError

    def grad(self, x: Tensor) -> Tensor:
        """∇D(x)."""
        raise NotImplementedError

    def A(self, x: Tensor) -> Tensor:
        """The linear operator, of norm one."""
        raise NotImplementedError

    def A_adjoint(self, y: Tensor) -> Tensor:
        """Its adjoint."""
        raise NotImplementedError

    def fidelity(self, x: Tensor) -> Tensor:
        """How far an image is from its data, in units of their noise (B,): the truth has about 1.

        Without a noise level, or with a smaller one, the unit is a ten-thousandth of the peak.
        """
        numbers = self.measurements.clamp_min(1) * (2 if self.y.is_complex() else 1)
        return (2 * self.misfit(x) / numbers).sqrt() / self.noise_unit()

    def misfit(self, x: Tensor) -> Tensor:
        """The part of D that the noise of the data explains (B,)."""
        return self.D(x)

    def noise_unit(self) -> Tensor:
        """The noise level that distances are measured in (B,)."""
        noise = torch.zeros_like(self.units.peak) if self.units.sigma_n is None else self.units.sigma_n
        return noise.clamp_min(LEAST_NOISE)

    def measured(self) -> list[Tensor]:
        """The measurement as images, for the observation of the paper."""
        return [self.x0()]

    @abstractmethod
    def export(self, image: Tensor) -> Tensor:
        """The image in the user's units and layout."""

    def estimated_noise(self) -> Tensor | None:
        """The noise level that the data show (B,), NaN where they do not, or None if they cannot."""
        return None

    def know_noise(self) -> None:
        """Estimate the noise level unless it is known; where the data do not show it, they count as free of noise."""
        if self.units.sigma_n is None:
            self.units = replace(self.units, sigma_n=self.estimated_noise())
        if self.units.sigma_n is not None and bool((unknown := self.units.sigma_n.isnan()).any()):
            self.units = replace(self.units, sigma_n=self.units.sigma_n.nan_to_num(nan=0.0))
            self.notes = [
                *self.notes,
                f"the physics declares no noise level for {named(unknown)}, and the data do not show it: they count as "
                "free of noise; pass sigma_n if they are not",
            ]

    def select(self, index: Tensor) -> Problem:
        """The problems at these positions of the batch, in this order; positions may repeat."""
        chosen = copy.copy(self)
        chosen.units = self.units.select(index)
        for name in self.per_image:
            setattr(chosen, name, getattr(self, name)[index])
        return chosen

    def to(self, device: torch.device) -> Problem:
        """The same problems on another device."""
        moved = copy.copy(self)
        moved.units = self.units.to(device)
        for name in self.per_image:
            setattr(moved, name, getattr(self, name).to(device))
        return moved

    def __len__(self) -> int:
        return self.y.shape[0]

    def all_active(self) -> Tensor:
        """A true flag per image (B,)."""
        return torch.ones(len(self), dtype=torch.bool, device=self.y.device)


PROBLEMS: Registry[Problem] = Registry("problem", __package__)


def open_problem(y: Any, physics: Physics, hints: Hints | None = None) -> Problem:
    """Turn data and a deepinv physics into the most specific Problem that accepts the physics."""
    hints = hints or Hints()
    photons = hints.gain is None or any(hasattr(part.noise_model, "gain") for part in parts_of_physics(physics))
    require(photons, "a gain is for physics whose noise model is deepinv's PoissonNoise or PoissonGaussianNoise")
    y, physics, hints, notes = plain(y, physics, hints)
    problem = problem_type(physics).of(y, physics, hints)
    problem.made_from, problem.notes = type(physics), [*notes, *problem.notes]
    problem.know_noise()
    return problem


def problem_type(physics: Physics) -> type[Problem]:
    """The kind of problem whose physics type comes first among the ancestors of this physics."""
    # Of two for one type the later is taken: a user's own comes after ours.
    fitting = [kind for kind in reversed(PROBLEMS.entries()) if kind.accepts(physics)]
    if not fitting:
        known = ", ".join(sorted({PROBLEMS[name].physics_type.__name__ for name in PROBLEMS}))
        raise Incompatible(
            f"no way to reconstruct from a {type(physics).__name__}: a physics must derive from one of {known}, or "
            "have a problem of its own"
        )
    ancestors = type(physics).__mro__
    return min(fitting, key=lambda kind: ancestors.index(kind.physics_type))
