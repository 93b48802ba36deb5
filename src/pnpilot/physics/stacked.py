"""Several measurements of one image as one: their data side by side in a vector, each weighted by its noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from deepinv.physics import GaussianNoise, LinearPhysics, PoissonGaussianNoise
from deepinv.utils.mixins import MRIMixin
from torch import Tensor, nn


class SideBySide(LinearPhysics):
    """What linear operators measure of one image, as one vector per image (B, n) whose noise is white.

    `levels` (B, parts) are the noise levels of the parts. The vector holds each part times the lowest of them over its
    own: data with more noise count less.
    """

    def __init__(self, parts: Sequence[LinearPhysics], like: Sequence[Tensor], levels: Tensor) -> None:
        """`like` are data of the parts (B, …)."""
        least = levels.amin(1)
        super().__init__(noise_model=GaussianNoise(least))
        self.parts = nn.ModuleList(parts)
        self.register_buffer("weights", (least[:, None] / levels)[:, :, None, None])
        self.shapes = [(one.shape[1:], one.is_complex()) for one in like]

    def joined(self, measured: Iterable[Tensor]) -> Tensor:
        """The data of all parts as one vector."""
        flat = (torch.view_as_real(one) if one.is_complex() else one for one in measured)
        return torch.cat([weight * one.flatten(1) for weight, one in zip(self._each(), flat, strict=True)], 1)

    def count_photons(self, gains: Tensor, sigmas: Tensor) -> None:
        """Declare variances gain·Ax + σ² for the parts (B, parts), with a gain of zero for those that count none."""
        self.noise_model = PoissonGaussianNoise(self._of_each_number(gains), self._of_each_number(sigmas))

    def A(self, x: Tensor, **_: Any) -> Tensor:
        """What all parts measure of an image, as one vector."""
        return self.joined(part.A(x) for part in self._parts())

    def A_adjoint(self, y: Tensor, **_: Any) -> Tensor:
        """The sum of what all parts make of their data."""
        images = []
        for part, weight, (shape, is_complex) in zip(self._parts(), self._each(), self.shapes, strict=True):
            length = _length(shape, is_complex)
            own, y = weight * y[:, :length], y[:, length:]
            own = own.reshape(len(own), *shape, 2) if is_complex else own.reshape(len(own), *shape)
            images.append(part.A_adjoint(torch.view_as_complex(own) if is_complex else own))
        return torch.stack(images).sum(0)

    def _of_each_number(self, values: Tensor) -> Tensor:
        """Values of the parts (B, parts), times the weights, for every number of the vector."""
        lengths = torch.tensor([_length(*shape) for shape in self.shapes], device=values.device)
        return (values * self.weights[:, :, 0, 0]).repeat_interleave(lengths, 1)

    def _parts(self) -> list[Any]:
        return list(self.parts)

    def _each(self) -> tuple[Tensor, ...]:
        return self.weights[:, :, :, 0].unbind(1)


class SideBySideMRI(MRIMixin, SideBySide):
    """The same for operators of MRI, whose images have real and imaginary part as channels."""


def side_by_side(parts: Sequence[LinearPhysics], like: Sequence[Tensor], levels: Tensor) -> SideBySide:
    """One operator for several; their noise levels are (B, parts)."""
    kind = SideBySideMRI if all(isinstance(part, MRIMixin) for part in parts) else SideBySide
    return kind(parts, like, levels)


def _length(shape: torch.Size, is_complex: bool) -> int:
    """How many real numbers data of this shape are."""
    return shape.numel() * (2 if is_complex else 1)
