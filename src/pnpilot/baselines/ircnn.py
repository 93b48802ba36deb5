"""IRCNN: half-quadratic splitting with a denoiser whose strength falls by a schedule."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from torch import Tensor

from ..denoisers import Denoiser, build_denoiser
from ..policies.schedules import IRCNNSchedule
from ..reconstruct import rollout
from ..solvers import build_solver
from ..tasks.csmri import MaskedFourier
from ._searched import Searched
from .base import BASELINES


@BASELINES.register("ircnn")
class IRCNN(Searched):
    """IRCNN: half-quadratic splitting, σ from 49/255 down to `last`, μ = weight·σ_n²/σ², here with our denoiser."""

    reference = "Zhang, Zuo, Gu & Zhang, CVPR 2017"
    iterations = 30
    grid = {
        "last": (1.5, 3.0, 5.0, 8.0, 12.0, 18.0, 25.0, 35.0),
        "weight": (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
    }

    @cached_property
    def denoiser(self) -> Denoiser:
        """The one that ships: stronger than the dilated network of the paper, and the same as in PnPilot."""
        return build_denoiser("compact")

    def made_with(self) -> Any:
        """Constants and denoiser."""
        return [super().made_with(), self.denoiser.sha256]

    def solve(self, problem: MaskedFourier, *, last: float, weight: float) -> Tensor:
        """Thirty iterations."""
        solver = build_solver("hqs", problem.offers)
        policy = IRCNNSchedule(solver, self.iterations, last=last / 255, weight=weight)
        *_, step = rollout(problem, solver, self.denoiser.to(problem.y.device), policy)
        return step.image.real
