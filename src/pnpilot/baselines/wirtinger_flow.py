"""Wirtinger flow."""

from __future__ import annotations

import math

from torch import Tensor

from ..tasks.phase import AmplitudeProblem, back, fields
from ._phase import PhaseBaseline, aligned, even_start, mean_intensity
from .base import BASELINES

RAMP, LARGEST_STEP = 330, 0.05
"""How the step grows, in iterations, and where it stays: published is 0.2, which ends lower in much noise."""


@BASELINES.register("wf")
class WirtingerFlow(PhaseBaseline):
    """Wirtinger flow: gradient descent on intensities, from an even start that suits few masks."""

    reference = "Candès, Li & Soltanolkotabi, IEEE Trans. Inf. Theory 2015"
    iterations = 1000

    def reconstruct(self, problem: AmplitudeProblem) -> Tensor:
        """z ← z − step/mean(y²)·A†((|Az|² − y²)·Az)."""
        z, intensity = even_start(problem), mean_intensity(problem)
        for t in range(1, self.iterations + 1):
            step = min(1 - math.exp(-t / RAMP), LARGEST_STEP)
            field = fields(problem.masks, z)
            z = z - step / intensity * back(problem.masks, (field.abs().square() - problem.y.square()) * field)
        return aligned(z)
