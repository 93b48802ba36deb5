"""RecPF: total variation and wavelets by the alternating direction method."""

from __future__ import annotations

import torch
from torch import Tensor

from ..problems.masked_fourier import MaskedFourier
from ._mri import MRIBaseline, fft, for_real_images, real_ifft
from ._searched import Searched
from ._wavelets import Wavelet
from .base import BASELINES

BETA = 10.0
"""Weight of the splitting, relative to that of the regularisers."""


@BASELINES.register("recpf")
class RecPF(Searched[MaskedFourier], MRIBaseline):
    """RecPF: ½‖MFu − y‖² + tv·TV(u) + wavelet·‖Ψu‖₁ with periodic differences, split and solved in k-space."""

    reference = "Yang, Zhang & Yin, IEEE J. Sel. Top. Signal Process. 2010"
    modules = ("pywt",)
    iterations = 100
    grid = {"tv": (1e-3, 4e-3, 1.6e-2, 6.4e-2), "wavelet": (0.0, 1e-3, 4e-3, 1.6e-2)}

    def solve(self, problem: MaskedFourier, *, tv: float, wavelet: float) -> Tensor:
        """Shrink differences and wavelet coefficients, then fit the image to both and to the data."""
        psi = Wavelet("haar", 3, *problem.y.shape[-2:])
        weights, data = for_real_images(problem)
        denominator = weights + tv * BETA * _laplacian(data) + wavelet * BETA
        u = torch.zeros_like(problem.mask)
        b = torch.zeros(2, *u.shape, device=u.device)
        d = torch.zeros_like(u)
        for _ in range(self.iterations):
            w = _shortened(_differences(u) + b, 1 / BETA)
            zeta = psi.shrunk(u + d, 1 / BETA) if wavelet else u
            pull = tv * BETA * _adjoint(w - b) + wavelet * BETA * (zeta - d)
            u = real_ifft((data + fft(pull)) / denominator.clamp_min(1e-8))
            b, d = b + _differences(u) - w, d + u - zeta if wavelet else d
        return u


def _differences(u: Tensor) -> Tensor:
    return torch.stack([u.roll(-1, -1) - u, u.roll(-1, -2) - u])


def _adjoint(p: Tensor) -> Tensor:
    return p[0].roll(1, -1) - p[0] + p[1].roll(1, -2) - p[1]


def _laplacian(like: Tensor) -> Tensor:
    """|D̂|²: the factor of each frequency under the differences followed by their adjoint."""
    height, width = like.shape[-2:]
    rows, columns = (4 * torch.sin(torch.pi * torch.fft.fftfreq(n)).square() for n in (height, width))
    return (rows[:, None] + columns[None]).to(like.device)


def _shortened(s: Tensor, length: float) -> Tensor:
    """Each pixel's vector shortened by `length`, or to zero."""
    size = s.norm(dim=0, keepdim=True)
    return s * (1 - length / size.clamp_min(length))
