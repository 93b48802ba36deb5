"""FCSA: total variation and wavelets by composite splitting."""

from __future__ import annotations

import math

import torch
from deepinv.models import TVDenoiser
from torch import Tensor

from ..problems.masked_fourier import MaskedFourier
from ._mri import MRIBaseline
from ._searched import Searched
from ._wavelets import Wavelet
from .base import BASELINES

INNER = 10
"""Iterations of the inner total-variation step. It starts where the last one ended."""


@BASELINES.register("fcsa")
class FCSA(Searched[MaskedFourier], MRIBaseline):
    """FCSA: the penalties of RecPF; one proximal step for each, averaged, with acceleration."""

    reference = "Huang, Zhang & Metaxas, MICCAI 2010"
    modules = ("pywt",)
    iterations = 50
    grid = {"tv": (1e-3, 4e-3, 1.6e-2, 6.4e-2), "wavelet": (1e-3, 4e-3, 1.6e-2)}

    def solve(self, problem: MaskedFourier, *, tv: float, wavelet: float) -> Tensor:
        """A gradient step, the mean of both proximal steps, and the momentum of FISTA."""
        phi = Wavelet("db4", 4, *problem.y.shape[-2:])
        smooth = TVDenoiser(n_it_max=INNER, crit=0.0, tau=0.2)
        x = r = torch.zeros_like(problem.mask)
        t = 1.0
        for _ in range(self.iterations):
            g = r - problem.grad(r).real
            before, x = x, ((smooth(g, 2 * tv) + phi.shrunk(g, 2 * wavelet)) / 2).clamp(0, 1)
            last, t = t, (1 + math.sqrt(1 + 4 * t * t)) / 2
            r = x + (last - 1) / t * (x - before)
        return x
