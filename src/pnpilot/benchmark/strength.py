"""The paper's first figure: every image has its own best denoising strength; and what a learned policy chooses."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ..denoisers import Denoiser
from ..errors import require
from ..metrics import psnr
from ..policies import Policy
from ..reconstruct import rollout
from ..simulation import simulated
from ..tasks import Setting, Task
from .oracles import Surface, search_range

POINTS, CLOSER = 10, 8
"""Strengths over the whole range, and once more around the optima."""


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
    first = next(iter(solver.params))
    require(first == "sigma", f"strengths are those of a sigma; the first parameter of {solver.name!r} is {first!r}")
    others = [parameter.default for name, parameter in list(solver.params.items())[:2] if name != "sigma"]
    surface = Surface(problem, solver, denoiser, truth, batch=batch)

    def scores(sigma: Tensor) -> Tensor:
        points = torch.stack([sigma, *(torch.full_like(sigma, value) for value in others)], 1).log()
        return surface.curves(points[:, None].expand(-1, len(problem), -1))[..., -1].cpu()

    low, high = torch.tensor(search_range(solver.params["sigma"])).log()
    sigma = torch.linspace(low, high, POINTS).exp()
    curves = scores(sigma)
    best = curves.argmax(0)
    low, high = sigma[(best.min() - 1).clamp_min(0)], sigma[(best.max() + 1).clamp_max(POINTS - 1)]
    closer = torch.linspace(low.log(), high.log(), CLOSER + 2).exp()[1:-1]
    order = torch.cat([sigma, closer]).argsort()
    sigma, curves = torch.cat([sigma, closer])[order], torch.cat([curves, scores(closer)])[order]
    total, count = torch.zeros(len(problem)), torch.zeros(len(problem))
    for step in rollout(problem, solver, denoiser, policy):
        ran = step.ran.cpu()
        total += step.action.params["sigma"].sum(1).cpu() * ran
        count += step.action.iterations * ran
    return Strength(sigma, curves, total / count, psnr(solver.output(step.state), truth).cpu())
