"""BM3D-prGAMP: approximate message passing for amplitudes, with BM3D inside."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor

from ..physics.coded_diffraction import back, fields
from ..problems.amplitudes import AmplitudeProblem
from ..solvers.base import noise_pattern
from ._bm3d import denoised
from ._one_task import image_by_image, noise_level
from ._phase import PhaseBaseline, direction, even_start
from .base import BASELINES

DAMPING = 0.1
PROBE = 1e-3
"""Size of the noise that probes the divergence of the denoiser, relative to the largest value."""
SMALLEST = 1e-12
"""Lower bound of divisors."""


@BASELINES.register("bm3d-prgamp")
class BM3DprGAMP(PhaseBaseline):
    """BM3D-prGAMP: message passing between amplitudes, with Gaussian noise inside the modulus, and BM3D."""

    reference = "Metzler, Maleki & Baraniuk, ICIP 2016"
    modules = ("bm3d",)
    one_by_one = True
    iterations = 50

    def reconstruct(self, problem: AmplitudeProblem) -> Tensor:
        """Image by image."""
        return image_by_image(problem, self._one)

    def _one(self, problem: AmplitudeProblem) -> Tensor:
        masks, noise = problem.y.shape[1], max(noise_level(problem).square().item(), SMALLEST)
        x = mean_x = even_start(problem).real
        score = torch.zeros_like(problem.y, dtype=problem.masks.dtype)
        x_variance, p_variance, precision = x.square().mean().item(), 0.0, 0.0  # the start knows nothing but the energy
        for _ in range(self.iterations):
            p_variance = max(_damped(x_variance, p_variance), SMALLEST)
            p = fields(problem.masks, x) - p_variance * score
            new_score, new_precision = amplitude_score(problem.y, p, noise, p_variance)
            score, precision = _damped(new_score, score), _damped(new_precision, precision)
            r_variance = 1 / max(masks * precision, SMALLEST)
            mean_x = _damped(x, mean_x)
            r = (mean_x + r_variance * masks * back(problem.masks, score)).real
            x, divergence = _denoised(r, r_variance**0.5)
            x_variance = r_variance * max(divergence, 0.0)
        return x


T = TypeVar("T", float, Tensor)


def _damped(new: T, old: T) -> T:
    return DAMPING * new + (1 - DAMPING) * old


def _denoised(r: Tensor, level: float) -> tuple[Tensor, float]:
    """BM3D and its divergence: the mean derivative of the result by its input, probed with noise."""
    pattern = noise_pattern(tuple(r.shape[-2:]), r.device)
    step = PROBE * max(r.abs().max().item(), SMALLEST)
    x, nearby = (denoised(image, level, both_stages=True) for image in (r, r + step * pattern))
    return x, (pattern * (nearby - x)).mean().item() / step


def amplitude_score(y: Tensor, p: Tensor, noise: float, variance: float) -> tuple[Tensor, float]:
    """Score and precision of fields with mean p and this variance, given amplitudes y = |field + noise|.

    With ẑ and v the mean and the mean variance of the fields given y: (ẑ − p)/variance and (1 − v/variance)/variance.
    """
    size = p.abs()
    kappa = 2 * y * size / (noise + variance)
    # The mean cosine between the field and p is I₁(κ)/I₀(κ); this is the lesser of two upper bounds.
    cosine = torch.minimum(kappa / (kappa.square() + 4).sqrt(), kappa / (0.5 + (kappa.square() + 0.25).sqrt()))
    measured, guessed = y / (1 + noise / variance), size / (1 + variance / noise)
    mean = guessed + measured * cosine
    spread = measured.square() + guessed.square() + (1 + kappa * cosine) / (1 / noise + 1 / variance) - mean.square()
    return (mean * direction(p) - p) / variance, (1 - spread.mean().item() / variance) / variance
