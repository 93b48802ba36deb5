"""DPIR with the starts, iterations and strengths that it was published with."""

from __future__ import annotations

from typing import NamedTuple

import torch
from deepinv.physics import Blur, BlurFFT, Demosaicing, Denoising, Downsampling, Inpainting, Physics, SpaceVaryingBlur
from torch import Tensor
from torch.nn import functional as F

from ..errors import Incompatible
from ..problems import Hints, open_problem
from ..problems._data import noise_of
from ..problems.linear import LinearProblem
from ..types import one_each
from .base import BASELINES, Answer
from .dpir import FLOOR, OurDenoiser

FIRST = 49 / 255
"""The strength that its schedule begins with."""
WEIGHT = 0.23
"""μ_k in units of σ_n²/σ_k²."""


class Recipe(NamedTuple):
    """How one kind of physics is treated."""

    start: Tensor
    """(B, C, H, W)."""
    iterations: int
    least: float = 0.0
    """The last strength is the noise level, but no less than this."""


@BASELINES.register("dpir-published")
class PublishedDPIR(OurDenoiser):
    """DPIR as published: with its own start, 8 to 40 iterations, turned images; here with our denoiser."""

    reference = "Zhang, Li, Zuo, Zhang, Van Gool & Timofte, TPAMI 2021; inpainting: IRCNN's 30 iterations"
    serves = frozenset({"deblur", "super-resolution"})
    iterations = 40

    def __call__(self, y: Tensor, physics: Physics) -> Tensor:
        """Reconstruct."""
        return self.answer(y, physics).image

    @torch.no_grad()
    def answer(self, y: Tensor, physics: Physics) -> Answer:
        """Half-quadratic splitting: data step, then the denoiser on the image, turned another way in each iteration."""
        sigma = noise_of(physics)
        if sigma is None or not isinstance(physics, KINDS):
            raise Incompatible(f"{self.name} needs a blur, Downsampling, Inpainting or Demosaicing with Gaussian noise")
        problem, recipe = open_problem(y, physics, Hints(peak=1.0, real=True)), recipe_for(y, physics)
        assert isinstance(problem, LinearProblem)
        exact = one_each(sigma, y, "noise levels")
        noise, x = exact.clamp_min(FLOOR), recipe.start
        iterations, denoiser = min(recipe.iterations, self.iterations), self.denoiser.to(y.device)
        for k in range(iterations):
            share = k / max(1, iterations - 1)
            strength = FIRST ** (1 - share) * noise.clamp_min(recipe.least) ** share
            mu = WEIGHT * (noise / strength / problem.gain).square()  # the problem's operator is of norm one
            x = turned(denoiser(turned(problem.prox(x, mu), k), strength), k, back=True)
        if isinstance(physics, Inpainting):  # what was measured without noise is known
            x = torch.where((physics.mask != 0) & (exact == 0)[:, None, None, None], y, x)
        return Answer(x.clamp(0, 1), torch.full((len(y),), iterations))


KINDS = (Blur, BlurFFT, SpaceVaryingBlur, Denoising, Downsampling, Inpainting)


def recipe_for(y: Tensor, physics: Physics) -> Recipe:
    """What was published for this kind of physics."""
    if isinstance(physics, Demosaicing):
        return Recipe(filled(y, physics.mask), 40, 0.6 / 255)
    if isinstance(physics, Inpainting):
        return Recipe(filled(y, physics.mask), 30)
    if isinstance(physics, Downsampling):
        return Recipe(enlarged(y, physics), 24, physics.factor / 255)
    if physics.A_adjoint(y).shape != y.shape:
        raise Incompatible("dpir-published needs a blurred image that is as large as the sharp one")
    return Recipe(y, 8)


def turned(x: Tensor, number: int, *, back: bool = False) -> Tensor:
    """The image turned by as many quarters, and every other four times mirrored; or that undone."""
    mirrored = number % 8 >= 4
    if back:
        return torch.rot90(x.flip(-1) if mirrored else x, -number, (-2, -1))
    found = torch.rot90(x, number, (-2, -1))
    return found.flip(-1) if mirrored else found


def filled(y: Tensor, mask: Tensor) -> Tensor:
    """Missing pixels as the mean of known neighbours, from the edges inwards: bilinear for a Bayer pattern."""
    known = (mask != 0).to(y).expand_as(y)
    image = y * known
    while True:
        share = F.avg_pool2d(known, 3, 1, 1)
        new = (known == 0) & (share > 0)
        if not bool(new.any()):
            return image
        image = torch.where(new, F.avg_pool2d(image, 3, 1, 1) / share.clamp_min(1e-6), image)
        known = known + new.to(known)


def enlarged(y: Tensor, physics: Downsampling) -> Tensor:
    """By bicubic interpolation between the places that samples see, which a ramp shows."""
    factor, shape = physics.factor, physics.A_adjoint(y[:1]).shape
    grid = []
    for axis in (-1, -2):
        length, samples = shape[axis], y.shape[axis]
        place = torch.arange(length, device=y.device, dtype=y.dtype)
        seen = physics.A((place if axis == -1 else place[:, None]).expand(shape))
        middle = seen[0, 0, seen.shape[-2] // 2, seen.shape[-1] // 2] - factor * (samples // 2)
        grid.append(2 * (place - middle) / factor / (samples - 1) - 1)
    columns, rows = grid
    places = torch.stack(torch.broadcast_tensors(columns[None], rows[:, None]), -1)
    return F.grid_sample(
        y, places[None].expand(len(y), -1, -1, -1), mode="bicubic", padding_mode="border", align_corners=True
    )
