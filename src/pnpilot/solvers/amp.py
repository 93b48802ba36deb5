"""Denoising-based approximate message passing (D-AMP)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ..problems import Problem
from ..types import Denoise, Range, per_sample
from .base import SOLVERS, Solver, noise_pattern, scale


@SOLVERS.register("amp")
class AMP(Solver):
    """Approximate message passing: the residual carries an Onsager term, `factor` multiplies the noise level it shows.

    Meant for operators with orthonormal rows. The divergence of the denoiser is estimated with one fixed random probe.
    """

    reference = "Metzler, Maleki & Baraniuk, IEEE Trans. Inf. Theory 2016"
    priority = 60
    params = {"factor": Range(0.0, 2.0, 1.0)}
    needs = frozenset({"linear"})

    class State(NamedTuple):
        """The image, and the corrected residual in the data domain."""

        x: Tensor
        z: Tensor

    def init(self, problem: Problem) -> State:
        """x = 0, z = y."""
        return self.State(torch.zeros_like(problem.x0()), problem.y)

    def planes(self, state: State, problem: Problem) -> list[Tensor]:
        """The residual is seen through the adjoint."""
        return [state.x, problem.A_adjoint(state.z)]

    def step(self, state: State, problem: Problem, denoise: Denoise, *, factor: Tensor) -> State:
        """r = x + Aᴴz, x ← H_s(r) with s = factor·‖z‖/√n, z ← y − Ax + z·div H_s(r)/m."""
        x, z = state
        r = x + problem.A_adjoint(z)
        r = r.real if problem.units.real.all() and r.is_complex() else r
        pixels = r[0].numel()
        level = factor * z.flatten(1).norm(dim=1) / pixels**0.5
        x = denoise(r, level)
        epsilon = x.abs().flatten(1).amax(1) / 1000 + 1e-8
        probe = noise_pattern(tuple(r.shape[1:]), r.device)
        change = (denoise(r + scale(epsilon, probe), level) - x).real * probe
        divergence = change.flatten(1).sum(1) / epsilon
        onsager = z * per_sample(divergence / problem.measurements, z)
        return self.State(x, problem.y - problem.A(x) + onsager)
