"""Any deepinv linear physics as a Problem: `prox_l2` where it has a closed form, gradients otherwise."""

from __future__ import annotations

from typing import Any

import torch
from deepinv.physics import DecomposablePhysics, Downsampling, LinearPhysics, Physics
from deepinv.utils.mixins import MRIMixin
from torch import Tensor

from ..errors import BadInput
from ..problem import Hints, Problem, Units, checked_data, relative_norm
from ..types import per_sample

START_PENALTY = 1e-2
"""Weight of the ridge in the start of problems whose data step has a closed form."""


class LinearProblem(Problem):
    """y = Ax + noise for a deepinv linear physics; D(x) = ½‖Ax − y‖² / ‖A‖²."""

    per_image = ("y", "norm", "start", "measurements")

    def __init__(self, y: Tensor, units: Units, physics: LinearPhysics, norm: Tensor, start: Tensor) -> None:
        super().__init__(y, units)
        self.physics, self.norm, self.start = physics, norm, start
        self.offers = frozenset({"grad", "linear"} | ({"prox"} if has_closed_form(physics) else set()))
        self.measurements = torch.full_like(norm, y[0].numel())

    @classmethod
    def of(cls, y: Tensor, physics: LinearPhysics, hints: Hints) -> LinearProblem:
        """Look at the data, measure the operator, choose a start."""
        y = checked_data(y, "the measurement")
        try:
            adjoint = physics.A_adjoint(y)
        except (RuntimeError, ValueError, IndexError) as error:
            reason = str(error).splitlines()[0]
            raise BadInput(
                f"data of shape {tuple(y.shape)} do not fit the {type(physics).__name__}: {reason}"
            ) from error
        if not bool(adjoint.flatten(1).any(dim=1).all()):
            raise BadInput("the operator sees nothing of these data: are there zero samples in the mask?")
        norm = squared_norm(physics, adjoint)
        start = _start(physics, y, adjoint, norm)
        units = Units.of(hints, _inside(physics, start), noise_of(physics), real=not isinstance(physics, MRIMixin))
        return cls(units.scale(y), units, physics, norm, units.scale(start))

    def x0(self) -> Tensor:
        """Filtered back-projection, ridge solution or adjoint, whichever the operator has."""
        return _inside(self.physics, self.start)

    def A(self, x: Tensor) -> Tensor:
        """The operator as it is; `grad` and `prox` carry the normalisation."""
        return self.physics.A(_outside(self.physics, x))

    def A_adjoint(self, y: Tensor) -> Tensor:
        """Its adjoint over ‖A‖²."""
        adjoint = self.physics.A_adjoint(y)
        return _inside(self.physics, adjoint / per_sample(self.norm, adjoint))

    def grad(self, x: Tensor) -> Tensor:
        """Aᴴ(Ax − y) / ‖A‖²."""
        return self.A_adjoint(self.A(x) - self.y)

    def prox(self, v: Tensor, mu: Tensor) -> Tensor:
        """deepinv's closed form, whose γ is 1/(μ‖A‖²)."""
        gamma = per_sample(1 / (mu * self.norm), v)  # (B,) would broadcast along the width there
        return _inside(self.physics, self.physics.prox_l2(_outside(self.physics, v), self.y, gamma=gamma))

    def misfit(self, x: Tensor) -> Tensor:
        """‖Ax − y‖ / ‖y‖."""
        return relative_norm(self.A(x) - self.y, self.y)

    def select(self, index: Tensor) -> LinearProblem:
        """Problems by position; parameters of the physics that differ between images follow."""
        chosen = super().select(index)
        assert isinstance(chosen, LinearProblem)
        if any(self._differs(buffer) for buffer in self.physics.buffers()):
            chosen.physics = self.physics.clone()
            for module in chosen.physics.modules():
                for name, buffer in module.named_buffers(recurse=False):
                    if self._differs(buffer):
                        setattr(module, name, buffer[index])
        return chosen

    def _differs(self, buffer: Tensor) -> bool:
        # Masks and kernels are (B, C, H, W) when images have their own; shorter shapes are no batches.
        return buffer.ndim >= 4 and buffer.shape[0] == len(self) > 1

    def export(self, image: Tensor) -> Tensor:
        """deepinv's layout: two real channels for a complex image."""
        return _outside(self.physics, self.units.unscale(image))


def has_closed_form(physics: Physics) -> bool:
    """Whether `prox_l2` is exact and cheap: a known singular value decomposition, or circular super-resolution."""
    if isinstance(physics, Downsampling):
        return physics.padding == "circular" and physics.filter is not None
    return isinstance(physics, DecomposablePhysics)


def noise_of(physics: Physics) -> Any:
    """The Gaussian noise level that a physics declares, or None."""
    return getattr(physics.noise_model, "sigma", None)


def squared_norm(physics: LinearPhysics, like: Tensor, iterations: int = 20) -> Tensor:
    """‖A‖² for each image of a batch (B,), by power iteration from a fixed start."""
    x = torch.randn(like[:1].shape, generator=torch.Generator().manual_seed(0)).to(like).expand_as(like)
    norm = x.new_ones(like.shape[0])
    with torch.no_grad():
        for _ in range(iterations):
            x = physics.A_adjoint_A(x / per_sample(norm, x))
            norm = x.flatten(1).norm(dim=1).clamp_min(1e-12)
    return norm


def _start(physics: LinearPhysics, y: Tensor, adjoint: Tensor, norm: Tensor) -> Tensor:
    with torch.no_grad():
        if isinstance(physics, MRIMixin):
            return adjoint / per_sample(norm, adjoint)
        if has_closed_form(physics):
            gamma = per_sample(1 / (START_PENALTY * norm), adjoint)
            return physics.prox_l2(torch.zeros_like(adjoint), y, gamma=gamma)
        if hasattr(physics, "fbp"):
            return physics.fbp(y)
        return adjoint / per_sample(norm, adjoint)


def _inside(physics: Physics, image: Tensor) -> Tensor:
    return torch.complex(image[:, :1], image[:, 1:]) if isinstance(physics, MRIMixin) else image


def _outside(physics: Physics, image: Tensor) -> Tensor:
    if not isinstance(physics, MRIMixin):
        return image.real if image.is_complex() else image
    return to_two_channels(image)


def to_two_channels(image: Tensor) -> Tensor:
    """A complex or real image (B, 1, H, W) as deepinv's (B, 2, H, W)."""
    imaginary = image.imag if image.is_complex() else torch.zeros_like(image)
    return torch.cat([image.real, imaginary], 1)
