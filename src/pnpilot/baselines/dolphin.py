"""DOLPHIn: an image and a dictionary for its patches, learnt together from intensities."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ..physics.coded_diffraction import back, fields
from ..problems.amplitudes import AmplitudeProblem
from ..types import per_sample
from ._phase import PhaseBaseline, even_start
from ._searched import Searched
from .base import BASELINES

SIDE = 8
"""Side of the patches. There is one at every pixel, so they overlap."""
FIXED, LEARNT = 25, 50
"""Iterations with the first dictionary, then iterations that also improve it."""
SHORTEN, SUFFICIENT, TRIES = 0.5, 1e-4, 20
"""Armijo's rule: shorten a step until it brings the SUFFICIENT share of what the gradient predicts."""


@BASELINES.register("dolphin")
class DOLPHIn(Searched[AmplitudeProblem], PhaseBaseline):
    """DOLPHIn: ¼‖|Ax|² − y²‖² + ½coupling‖patches − Da‖² + sparsity‖a‖₁ over image, dictionary and codes in turn."""

    reference = "Tillmann, Eldar & Mairal, IEEE Trans. Signal Process. 2016"
    iterations = FIXED + LEARNT
    grid = {"coupling": (0.003, 0.01, 0.03, 0.1), "sparsity": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)}

    def solve(self, problem: AmplitudeProblem, *, coupling: float, sparsity: float) -> Tensor:
        """Improve codes, image and dictionary in turn; the result is the image that the codes describe."""
        x = even_start(problem).real
        dictionary = first_dictionary(x).expand(len(x), -1, -1)
        codes = dictionary.mT @ patches(x)
        step = torch.full((len(x),), 0.1, device=x.device)
        for iteration in range(self.iterations):
            codes = _sparser(codes, dictionary, patches(x), sparsity / coupling)
            described = dictionary @ codes
            x, step = _fitted(problem, x, described, coupling, step)
            if iteration >= FIXED:
                dictionary = _improved(dictionary, codes, patches(x))
        return averaged(dictionary @ codes, x)


def patches(x: Tensor) -> Tensor:
    """All patches of images (B, 1, H, W) as columns (B, 64, N)."""
    return F.unfold(x, SIDE)


def averaged(columns: Tensor, like: Tensor) -> Tensor:
    """Images from their patches, averaged where they overlap."""
    size = tuple(like.shape[-2:])
    return F.fold(columns, size, SIDE) / F.fold(patches(torch.ones_like(like)), size, SIDE)


def first_dictionary(like: Tensor) -> Tensor:
    """Single pixels and two-dimensional cosines: (64, 128), columns of norm one."""
    n = torch.arange(SIDE, device=like.device, dtype=like.dtype)
    waves = torch.cos(torch.pi / SIDE * (n[:, None] + 0.5) * n)
    waves = waves / waves.norm(dim=0)
    return torch.cat([torch.eye(SIDE**2).to(waves), torch.kron(waves, waves)], 1)


def _sparser(codes: Tensor, dictionary: Tensor, columns: Tensor, weight: float) -> Tensor:
    """One step of iterative shrinkage on ½‖columns − Da‖² + weight·‖a‖₁."""
    curvature = torch.linalg.matrix_norm(dictionary, 2).square()[:, None, None]
    moved = codes - dictionary.mT @ (dictionary @ codes - columns) / curvature
    return moved.sign() * (moved.abs() - weight / curvature).clamp_min(0)


def _fitted(
    problem: AmplitudeProblem, x: Tensor, described: Tensor, coupling: float, step: Tensor
) -> tuple[Tensor, Tensor]:
    """One projected gradient step on the image. Armijo's rule starts from twice the last step."""
    intensity, masks = problem.y.square(), problem.y.shape[1]

    def value(image: Tensor) -> Tensor:
        misfit = fields(problem.masks, image).abs().square() - intensity
        return misfit.square().sum((1, 2, 3)) / 4 + coupling / 2 * (patches(image) - described).square().sum((1, 2))

    field = fields(problem.masks, x)
    gradient = masks * back(problem.masks, (field.abs().square() - intensity) * field).real
    gradient = gradient + coupling * F.fold(patches(x) - described, tuple(x.shape[-2:]), SIDE)
    before, step = value(x), 2 * step
    for _ in range(TRIES):
        new = (x - per_sample(step, x) * gradient).clamp(0, 1)
        enough = before - SUFFICIENT * (gradient * (x - new)).sum((1, 2, 3))
        too_long = ~(value(new) <= enough)
        if not too_long.any():
            break
        step = torch.where(too_long, SHORTEN * step, step)
    return new, step


def _improved(dictionary: Tensor, codes: Tensor, columns: Tensor) -> Tensor:
    """One sweep over the atoms: each becomes the best for its codes, with norm one at most."""
    gram, cross = codes @ codes.mT, columns @ codes.mT
    atoms = dictionary.clone()
    for j in range(atoms.shape[2]):
        used = gram[:, j, j].clamp_min(1e-8)[:, None]
        atom = atoms[..., j] + (cross[..., j] - (atoms @ gram[:, :, j, None])[..., 0]) / used
        atoms[..., j] = atom / atom.norm(dim=1, keepdim=True).clamp_min(1)
    return atoms
