"""Hybrid input-output, with and without an object constraint."""

from __future__ import annotations

import torch
from torch import Tensor

from ..problems.amplitudes import AmplitudeProblem
from ._phase import PhaseBaseline, aligned, with_amplitudes
from .base import BASELINES

FEEDBACK = 0.9


@BASELINES.register("hio")
class HIO(PhaseBaseline):
    """Hybrid input-output with the object constraint: images are real and non-negative."""

    reference = "Fienup, Appl. Opt. 1982"
    iterations = 1000

    def reconstruct(self, problem: AmplitudeProblem) -> Tensor:
        """p ← Re A†(y·e^{i∠Ax}); x ← p where that is positive, x − 0.9·p elsewhere."""
        x = problem.x0().real
        for _ in range(self.iterations):
            p = with_amplitudes(problem, x).real
            x = torch.where(p > 0, p, x - FEEDBACK * p)
        return p


@BASELINES.register("hio-free")
class HIOFree(PhaseBaseline):
    """Hybrid input-output without an object constraint, which makes it Gerchberg-Saxton: x ← A†(y·e^{i∠Ax})."""

    reference = "Gerchberg & Saxton, Optik 1972; Fienup, Appl. Opt. 1982"
    iterations = 1000

    def reconstruct(self, problem: AmplitudeProblem) -> Tensor:
        """Iterate on complex images, and remove their global phase at the end."""
        x = problem.x0()
        for _ in range(self.iterations):
            x = with_amplitudes(problem, x)
        return aligned(x)
