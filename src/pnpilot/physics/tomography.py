"""Parallel-beam tomography with angles and a rotation axis anywhere, and rays that count by how well they are known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from deepinv.physics import LinearPhysics
from deepinv.physics.functional.radon import RampFilter
from torch import Tensor
from torch.nn.functional import grid_sample, pad

from ..errors import require

ON_CPU, ON_GPU = 2**19, 2**25
"""So many samples of rays are taken at a time: few, to stay near the processor, or many, to keep it busy."""


class ParallelBeam(LinearPhysics):
    """Line integrals of an image (B, C, size, size) along parallel rays: (B, C, angles, width), in pixels.

    `angles` are in degrees, as deepinv's Tomography has them. The axis of rotation is in the middle of the image and
    meets the detector at pixel `centre`, which need not be whole; by default it is in the middle there, too. `weights`
    (B or 1, 1, angles, width) multiply what is measured: that of a ray is one over its noise level, in any unit, and
    zero if it was lost.

    Every ray takes one sample of each row, or of each column if it is the steeper way, between the two pixels that it
    passes (Joseph's method); the adjoint is exact.
    """

    start_iterations = 30
    """Of conjugate gradients for a picture to start from: more do not show, and each follows all rays twice."""

    def __init__(
        self,
        angles: Tensor,
        width: int,
        size: int | None = None,
        centre: float | None = None,
        weights: Tensor | None = None,
        **others: Any,
    ) -> None:
        super().__init__(**others)
        require(angles.ndim == 1 and len(angles) > 0, f"angles must be a list of numbers, got {tuple(angles.shape)}")
        self.width, self.size = width, width if size is None else size
        self.centre = (width - 1) / 2 if centre is None else float(centre)
        shape = (1, 1, len(angles), width)
        weights = torch.ones(1, 1, 1, 1) if weights is None else weights
        fits = weights.ndim == 4 and all(
            own in (1, all_) for own, all_ in zip(weights.shape[1:], shape[1:], strict=True)
        )
        require(fits, f"weights must be (batch, 1, {len(angles)}, {width}), got {tuple(weights.shape)}")
        self.radians = torch.deg2rad(angles.double()).tolist()
        self.register_buffer("angles", angles.to(torch.float32))
        self.register_buffer("weights", weights.to(torch.float32))

    def A(self, x: Tensor, **_: Any) -> Tensor:
        """Line integrals, times the weights."""
        require(tuple(x.shape[-2:]) == (self.size, self.size), f"images must be {self.size}×{self.size}")
        return self.weights * _Project.apply(x, self)

    def A_adjoint(self, y: Tensor, **_: Any) -> Tensor:
        """Weighted data smeared back along their rays."""
        return _Smear.apply(self.weights * y, self)

    def fbp(self, integrals: Tensor) -> Tensor:
        """Filtered back-projection of line integrals without weights (B, C, angles, width).

        Detectors that end inside the sample are taken to go on with their last value.
        """
        more = self.width // 2
        wide = pad(integrals.flatten(0, 1), (more, more), mode="replicate").reshape(*integrals.shape[:3], -1)
        filtered = RampFilter(dtype=wide.dtype)(wide, dim=3)
        shares = self._shares().to(filtered)[:, None]
        return _Smear.apply(filtered[..., more : more + self.width] * shares / 2, self)

    def _shares(self) -> Tensor:
        """The angle that each projection stands for, half the way to its neighbours on either side; their sum is π."""
        turned = self.angles.remainder(180)
        order = turned.argsort()
        ordered = turned[order]
        gaps = torch.diff(ordered, append=ordered[:1] + 180)
        own = torch.empty_like(gaps)
        own[order] = (gaps + gaps.roll(1)) / 2
        return torch.deg2rad(own)

    def seen(self) -> Tensor:
        """The disk (size, size) of pixels that all angles see."""
        reach = min(self.centre, self.width - 1 - self.centre) + 0.5
        along = torch.arange(self.size) - (self.size - 1) / 2
        return along.square() + along[:, None].square() <= reach**2

    def turns(self, like: Tensor) -> Iterator[tuple[list[int], bool, Tensor, Tensor]]:
        """Angles, as many at a time as is quick for images like these (1, C, size, size), and how their rays run.

        Their numbers, whether they take samples of columns, the lengths of rays in each (n, 1, 1), and the places of
        the samples (n, size, width, 2) as grid_sample wants them.
        """
        middle = (self.size - 1) / 2
        rows = torch.arange(self.size, device=like.device, dtype=like.dtype)[:, None] - middle
        rays = torch.arange(self.width, device=like.device, dtype=like.dtype) - self.centre
        samples = ON_GPU if like.is_cuda else ON_CPU
        most = max(1, samples // (like.shape[1] * self.size * self.width))
        for steep in (False, True):
            own = [at for at, turn in enumerate(self.radians) if (abs(math.cos(turn)) < abs(math.sin(turn))) == steep]
            for first in range(0, len(own), most):
                numbers = own[first : first + most]
                angles = torch.tensor([self.radians[at] for at in numbers], dtype=torch.float64)[:, None, None]
                cosine, sine = (part.to(like) for part in (angles.cos(), angles.sin()))
                across, along = (-sine, cosine) if steep else (cosine, -sine)
                places = (rays - along * rows) / across
                grid = torch.stack([places, rows.expand_as(places)], -1) / max(middle, 0.5)
                yield numbers, steep, 1 / across.abs(), grid


class _Project(torch.autograd.Function):
    """Line integrals, and as their gradient the adjoint: autograd's own would keep every sample of every ray."""

    @staticmethod
    def forward(context: Any, x: Tensor, rays: ParallelBeam) -> Tensor:
        context.rays = rays
        image = x.flatten(0, 1)[None]
        sides = image, image.transpose(2, 3).contiguous()
        sums = x.new_empty(image.shape[1], len(rays.radians), rays.width)
        for numbers, steep, length, grid in rays.turns(image):
            side = sides[steep].expand(len(numbers), -1, -1, -1)
            sums[:, numbers] = (length * grid_sample(side, grid, align_corners=True).sum(2)).transpose(0, 1)
        return sums.reshape(*x.shape[:2], *sums.shape[1:])

    @staticmethod
    def backward(context: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _Smear.apply(grad, context.rays), None


class _Smear(torch.autograd.Function):
    """The adjoint of line integrals; its gradient is line integrals."""

    @staticmethod
    def forward(context: Any, y: Tensor, rays: ParallelBeam) -> Tensor:
        context.rays = rays
        sinograms = y.flatten(0, 1)
        like = y.new_zeros(1, len(sinograms), rays.size, rays.size)
        sides = [torch.zeros_like(like), torch.zeros_like(like)]
        for numbers, steep, length, grid in rays.turns(like):
            rows = (length * sinograms[:, numbers].transpose(0, 1))[:, :, None].expand(-1, -1, rays.size, -1)
            sides[steep] += _spread(rows, like, grid)
        return (sides[0] + sides[1].transpose(2, 3)).reshape(*y.shape[:2], rays.size, rays.size)

    @staticmethod
    def backward(context: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _Project.apply(grad, context.rays), None


def _spread(samples: Tensor, like: Tensor, grid: Tensor) -> Tensor:
    """The adjoint of grid_sample: an image like `like`, from samples at the places of the grid."""
    with torch.enable_grad():
        image = like.requires_grad_()
        sampled = grid_sample(image.expand(len(grid), -1, -1, -1), grid, align_corners=True)
        return torch.autograd.grad(sampled, image, samples)[0]
