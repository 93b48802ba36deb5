"""IRCNN: half-quadratic splitting with a denoiser whose strength falls by a schedule."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from torch import Tensor

from ..denoisers import Denoiser, build_denoiser
from ..policies.schedules import IRCNNSchedule
from ..problems import Units
from ..problems.masked_fourier import MaskedFourier
from ..reconstruct import rollout
from ..solvers import build_solver
from ..types import per_sample
from ._mri import MRIBaseline, fit, for_real_images
from ._searched import Searched
from .base import BASELINES


class RealFourier(MaskedFourier):
    """Masked Fourier data of real images, with the exact data step for these."""

    per_image = (*MaskedFourier.per_image, "weights", "data")

    def __init__(self, y: Tensor, units: Units, mask: Tensor) -> None:
        super().__init__(y, units, mask)
        self.weights, self.data = for_real_images(self)

    def prox(self, v: Tensor, mu: Tensor, start: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """The weighted mean of v and the data, over each frequency and its mirror image."""
        return fit((self.weights, self.data), v, per_sample(mu, self.mask))


@BASELINES.register("ircnn")
class IRCNN(Searched[MaskedFourier], MRIBaseline):
    """IRCNN: half-quadratic splitting, σ from 49/255 down to `last`, μ = weight·σ_n²/σ², here with our denoiser."""

    reference = "Zhang, Zuo, Gu & Zhang, CVPR 2017"
    iterations = 30
    grid = {
        "last": (1.5, 3.0, 5.0, 8.0, 12.0, 18.0),
        "weight": (0.01, 0.05, 0.2),
    }

    @cached_property
    def denoiser(self) -> Denoiser:
        """The one that ships: that of PnPilot, stronger than the dilated network of the paper."""
        return build_denoiser("compact")

    def made_with(self) -> Any:
        """Constants and denoiser."""
        return [super().made_with(), self.denoiser.sha256]

    def solve(self, problem: MaskedFourier, *, last: float, weight: float) -> Tensor:
        """Half-quadratic splitting along the schedule."""
        problem = RealFourier(problem.y, problem.units, problem.mask)
        solver = build_solver("hqs", problem.offers)
        policy = IRCNNSchedule(solver, self.iterations, last=last / 255, weight=weight)
        *_, step = rollout(problem, solver, self.denoiser.to(problem.y.device), policy)
        return solver.output(step.state).real
