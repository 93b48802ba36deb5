"""Wirtinger flow."""

from __future__ import annotations

import math

from torch import Tensor

from ..physics.coded_diffraction import back, fields
from ..problems.amplitudes import AmplitudeProblem
from ._phase import PhaseBaseline, aligned, even_start, mean_intensity
from .base import BASELINES

RAMP, LARGEST_STEP = 330, 0.05
"""The step grows over RAMP iterations until LARGEST_STEP. The published 0.2 does worse in strong noise."""


@BASELINES.register("wf")
class WirtingerFlow(PhaseBaseline):
    """Wirtinger flow: gradient descent on intensities, from a constant start, which suits few masks."""

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
