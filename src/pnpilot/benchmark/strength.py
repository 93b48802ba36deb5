"""The paper's first figure: every image has its own best denoising strength, and what a learned policy makes of it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ..denoisers import Denoiser
from ..metrics import psnr
from ..policies import Policy
from ..policies.oracle import Surface
from ..reconstruct import rollout
from ..tasks import Setting, Task, simulated

POINTS = 15


class Strength(NamedTuple):
    """PSNR after 30 iterations over constant strengths, per image, and a policy's choice."""

    sigma: Tensor
    """(P,)."""
    curves: Tensor
    """(P, B)."""
    chosen: Tensor
    """(B,): mean σ_k of the policy over its iterations."""
    reached: Tensor
    """(B,): its PSNR."""


@torch.no_grad()
def measure_strength(
    task: Task, setting: Setting, truth: Tensor, denoiser: Denoiser, policy: Policy, *, batch: int, seed: int = 0
) -> Strength:
    """Try constant strengths with the solver's other parameters at their defaults; then run the policy."""
    problem, solver = simulated(task, truth, setting, seed), policy.solver
    limits = solver.params["sigma"]
    sigma = torch.logspace(torch.tensor(3 / 255).log10(), torch.tensor(limits.high).log10(), POINTS)
    others = [parameter.default for name, parameter in list(solver.params.items())[:2] if name != "sigma"]
    points = torch.stack([sigma, *(torch.full_like(sigma, value) for value in others)], 1).log()
    surface = Surface(problem, solver, denoiser, truth, batch=batch)
    curves = surface.curves(points[:, None].expand(-1, len(problem), -1))[..., -1]
    total, count = torch.zeros(len(problem)), torch.zeros(len(problem))
    for step in rollout(problem, solver, denoiser, policy):
        ran = step.ran.cpu()
        total += step.action.params["sigma"].sum(1).cpu() * ran
        count += step.action.iterations * ran
    return Strength(sigma, curves, total / count, psnr(step.image.real, truth).cpu())
