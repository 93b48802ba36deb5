"""How a policy does on images that it does not learn from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..denoisers import Denoiser
from ..errors import require
from ..metrics import psnr
from ..policies.learned import Learned
from ..reconstruct import rollout
from ..simulation import simulated
from ..tasks import Task
from .augment import augmented
from .learners.base import image_of
from .patches import corners

Scores = dict[str, dict[str, float]]
"""PSNR and iterations by setting."""


class Exam:
    """Held-out images, as they are and altered, in every setting of the task's benchmark."""

    def __init__(self, task: Task, images: list[np.ndarray], size: int, device: torch.device) -> None:
        self.task = task
        self.truth = plain_and_altered(images, size).to(device)
        self.problems = [simulated(task, self.truth, setting, seed=1) for setting in task.settings]
        self.runs = len(self.truth) * len(self.problems)

    @torch.no_grad()
    def take(self, policy: Learned, denoiser: Denoiser) -> Scores:
        """PSNR and iterations per setting."""
        tuned, torch.backends.cudnn.benchmark = torch.backends.cudnn.benchmark, False  # batches shrink here
        scores: Scores = {}
        try:
            for setting, problem in zip(self.task.settings, self.problems, strict=True):
                *_, last = rollout(problem, policy.solver, denoiser, policy)
                found = psnr(image_of(problem, policy.solver, last.state), self.truth)
                iterations = last.iterations.float().mean().item()
                scores[setting.label] = {"psnr": round(found.mean().item(), 3), "iterations": round(iterations, 2)}
        finally:
            torch.backends.cudnn.benchmark = tuned
        return scores


def plain_and_altered(images: Sequence[np.ndarray], size: int) -> Tensor:
    """Held-out photographs as they are, then the same ones altered as in training (2N, 1, size, size)."""
    plain = corners(images, size)
    require(
        len(plain) > 0,
        f"none of the {len(images)} held-out images is at least {size}×{size}; more and larger images are needed",
    )
    return torch.cat([plain, augmented(plain, torch.Generator().manual_seed(1))])


def in_words(scores: Scores) -> str:
    """Scores in a line: PSNR@iterations by setting."""
    return "  ".join(f"{label} {s['psnr']:.2f}@{s['iterations']:.1f}" for label, s in scores.items())
