"""What all linear problems share: the data term, and data step and start by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..types import per_sample
from ._data import energy, product
from ._units import Hints, Units
from .base import Problem

Linear = Callable[[Tensor], Tensor]

LIMIT, TOLERANCE = 7, 1e-5
"""Of the data step: at most so many iterations, fewer where the residual falls to this share of the right-hand side."""
START_LIMIT, START_TOLERANCE = 300, 1e-5
"""Of the start. Most take 15 to 65 iterations; wide gaps are filled from their edges inwards, a pixel an iteration."""
ROUGH = 10
"""Iterations for a first picture, which shows the peak."""
USUAL = 5 / 255
"""A noise level for starts where none is known, in units of the peak."""
SMOOTH_AT = 0.07
"""The noise level, in units of the peak, at which the start is smoothed with weight one."""
SMOOTHEST, SHARPEST = 1.0, 1e-3
"""Bounds of that weight."""
PROBE = 7_306_194_825
"""A seed that nobody takes: masks drawn with the seed of the noise that probes them would pick its large values."""
RIDGE = 1e-6
"""Keeps the start unique where the operator sees nothing and smoothing says nothing; more would darken wide gaps."""


class LeastSquares(Problem):
    """D(x) = ½‖Ax − y‖² for a linear operator A of norm one.

    A subclass that knows its data step in closed form overrides `prox`, one that knows a fast AᴴA `normal`.
    """

    offers = frozenset({"prox", "grad", "linear"})
    per_image: tuple[str, ...] = ("y", "back", "measurements", "kept")

    def __init__(self, y: Tensor, units: Units, back: Tensor) -> None:
        super().__init__(y, units)
        self.back = back
        """Aᴴy."""

    def normal(self, x: Tensor) -> Tensor:
        """AᴴAx."""
        return self.A_adjoint(self.A(x))

    def D(self, x: Tensor) -> Tensor:
        """½‖Ax − y‖²."""
        return energy(self.A(x) - self.y) / 2

    def grad(self, x: Tensor) -> Tensor:
        """Aᴴ(Ax − y)."""
        return self.normal(x) - self.back

    def prox(self, v: Tensor, mu: Tensor, start: Tensor | None = None) -> Tensor:
        """(AᴴA + μ)z = Aᴴy + μv by conjugate gradients from `start`, or from v."""
        return self.solved(self.normal, v, mu, start)

    def solved(self, normal: Linear, v: Tensor, mu: Tensor, start: Tensor | None) -> Tensor:
        """The same, with AᴴA given."""
        weight = per_sample(mu, v)
        return conjugate_gradients(
            lambda z: normal(z) + weight * z, self.back + weight * v, v if start is None else start
        )


def conjugate_gradients(
    operator: Linear,
    b: Tensor,
    start: Tensor,
    limit: int = LIMIT,
    tolerance: float = TOLERANCE,
    *,
    waits: bool = False,
) -> Tensor:
    """Solve operator(x) = b for a batch; every image has its own step, and rests once it is solved.

    Gradients pass through all iterations, and so are those of what is returned, also where the limit cuts it short.
    On a GPU all iterations are computed unless it `waits` for the device to tell whether all images are solved.
    """
    x, r = start, b - operator(start)
    p, left = r, energy(r)
    solved, tiny = tolerance**2 * energy(b), torch.finfo(left.dtype).tiny
    going, asks = torch.ones_like(left, dtype=torch.bool), waits or b.device.type == "cpu"
    for _ in range(limit):
        going = going & (left > solved)
        if asks and not bool(going.any()):
            break
        q = operator(p)
        curvature = product(p, q)
        going = going & (curvature > 0)  # an adjoint that is not quite one ends the descent, and not in NaN
        step = per_sample(torch.where(going, left / curvature.clamp_min(tiny), 0.0), x)
        x, r = x + step * p, r - step * q
        before, left = left, energy(r)
        p = r + per_sample(left / before.clamp_min(tiny), p) * p
    return x


def opened(
    hints: Hints,
    declared: Any,
    estimated: Tensor,
    gain: Tensor,
    normal: Linear,
    back: Tensor,
    limit: int = START_LIMIT,
) -> tuple[Units, Tensor]:
    """Units and start of problems with these normal equations, of norm one: AᴴA, and Aᴴy in the units of the image.

    The noise level is the hint, or `declared`, in the units of the data, or `estimated`, in those of data over `gain`.
    """

    def units_of(picture: Tensor) -> Units:
        units = Units.of(hints, picture, declared, gain)
        return units.showing(estimated / units.peak)

    usual = torch.full_like(gain, USUAL)
    level = units_of(smooth_start(normal, back, usual, ROUGH)).sigma_n
    assert level is not None
    start = smooth_start(normal, back, level.where(~level.isnan(), USUAL), limit)
    return units_of(start), start


def smooth_start(normal: Linear, back: Tensor, level: Tensor, limit: int = START_LIMIT) -> Tensor:
    """A picture from data: (AᴴA + λLᵀL + ε)x = Aᴴy, with L the gradient of an image, and λ = (σ/0.07)² within bounds.

    `level` (B,) is the noise level σ of the data in units of the peak. What was not measured is filled in smoothly.
    """
    weight = per_sample((level / SMOOTH_AT).square().clamp(SHARPEST, SMOOTHEST), back)

    def operator(x: Tensor) -> Tensor:
        return normal(x) + weight * _roughness(x) + RIDGE * x

    # Data of any scale: single precision could not square them.
    size = per_sample(back.abs().flatten(1).amax(1).clamp_min(torch.finfo(level.dtype).tiny), back)
    with torch.no_grad():
        nothing = torch.zeros_like(back)
        return size * conjugate_gradients(operator, back / size, nothing, limit, START_TOLERANCE, waits=True)


def operator_norm(normal: Linear, like: Tensor, iterations: int = 100) -> Tensor:
    """‖A‖ for each image of a batch (B,), by power iteration on AᴴA from a fixed start until it no longer grows."""
    x, squared = noise_like(like), like.real.new_zeros(like.shape[0])
    growing = torch.ones_like(squared, dtype=torch.bool)
    with torch.no_grad():
        for _ in range(iterations):
            length = x.flatten(1).norm(dim=1).clamp_min(torch.finfo(squared.dtype).tiny)
            x = normal(x / per_sample(length, x))
            found = x.flatten(1).norm(dim=1)
            growing = growing & (found - squared > 5e-4 * found)
            squared = torch.where(growing, found, squared)
            if not bool(growing.any()):
                break
    return squared.clamp_min(torch.finfo(squared.dtype).tiny).sqrt()


def noise_like(image: Tensor) -> Tensor:
    """White noise, the same for every image of a batch."""
    one = torch.randn(image[:1].shape, generator=torch.Generator().manual_seed(PROBE))
    return one.to(image).expand_as(image)


def _roughness(x: Tensor) -> Tensor:
    """LᵀLx: the negative Laplacian with periodic boundaries."""
    neighbours = sum(torch.roll(x, way, axis) for axis in (-2, -1) for way in (-1, 1))
    return 4 * x - neighbours
