"""prDeep: regularisation by denoising, minimised in stages of less and less denoising."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import torch
from deepinv.physics import Physics
from torch import Tensor

from ..denoisers import Denoiser, build_denoiser
from ..physics.coded_diffraction import fields
from ..prior import prior
from ..problems.amplitudes import AmplitudeProblem
from ..types import per_sample
from ._fasta import Objective, fasta
from ._one_task import noise_level
from ._phase import PhaseBaseline
from .base import BASELINES, Answer

STAGES = ((40, 60), (20, 40), (10, 20), (0, 10))
"""Noise levels, on the 0-255 scale, that the network of each stage was trained for."""
NOISY, NOISY_STAGES = 50.0, 2
"""Images with a noise level α of NOISY or more end after this many stages."""
WEIGHT = 0.1
"""Weight of the regularisation, for data in units of their noise and images with values of 0-255."""
STEPS, TOLERANCE = 200, 1e-7
"""Most iterations of a stage, and the residual that ends it earlier."""


@BASELINES.register("prdeep")
class PrDeep(PhaseBaseline):
    """prDeep: regularisation by denoising, four stages of FASTA; here with our denoiser."""

    reference = "Metzler, Schniter, Veeraraghavan & Baraniuk, ICML 2018"
    iterations = STEPS * len(STAGES)

    @cached_property
    def denoiser(self) -> Denoiser:
        """The one that ships, in place of a DnCNN for each range of noise levels."""
        return build_denoiser("compact")

    def made_with(self) -> Any:
        """The sha256 of the denoiser."""
        return self.denoiser.sha256

    def reconstruct(self, problem: AmplitudeProblem) -> Tensor:
        """All images; those with much noise take fewer stages."""
        return self._staged(problem)[0]

    @torch.no_grad()
    def answer(self, y: Tensor, physics: Physics) -> Answer:
        """Reconstruct, and count the iterations that each image took."""
        problem = self.open(y, physics)
        image, iterations = self._staged(problem)
        return Answer(problem.export(image.clamp(0, 1)), iterations.cpu())

    def _staged(self, problem: AmplitudeProblem) -> tuple[Tensor, Tensor]:
        x = problem.x0() / 255
        taken = torch.zeros(len(problem), dtype=torch.long, device=x.device)
        noisy = 510 * noise_level(problem) >= NOISY
        for number, levels in enumerate(STAGES):
            index = (~noisy | (number < NOISY_STAGES)).nonzero().flatten()
            if len(index):
                part = problem.select(index)
                assert isinstance(part, AmplitudeProblem)
                objective = self._objective(part, *levels)
                found = fasta(objective, x[index], STEPS, TOLERANCE)
                x[index], taken[index] = found.x, taken[index] + found.iterations
        return x.real, taken

    def _objective(self, problem: AmplitudeProblem, lowest: float, highest: float) -> Objective:
        """½‖|Ax| − y‖² + w/2·xᵀ(x − D(x)): the paper's objective times the variance of the noise.

        The paper's networks are trained for a range of noise levels; ours is told the nearest level in that range.
        With J masks a pixel has √(2/J) of the noise of an amplitude, as that measures one of two real dimensions.
        """
        denoise, masks = prior(self.denoiser.to(problem.y.device), problem.units), problem.y.shape[1]
        noise = 255 * noise_level(problem)
        weights, level = WEIGHT * noise.square(), (math.sqrt(2 / masks) * noise).clamp(lowest, highest) / 255

        def value(x: Tensor) -> Tensor:
            return (fields(problem.masks, x).abs() - problem.y).square().sum((1, 2, 3)) / 2

        def prox(v: Tensor, step: Tensor) -> Tensor:
            pull = per_sample(step * weights, v)
            return (v + pull * denoise(v, level)) / (1 + pull)

        return Objective(value, lambda x: masks * problem.grad(x), prox)
