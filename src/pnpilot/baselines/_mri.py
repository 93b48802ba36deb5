"""What the methods for single-coil MRI share."""

from __future__ import annotations

from abc import abstractmethod

import torch
from deepinv.physics import Physics
from torch import Tensor

from ..errors import Incompatible
from ..problem import Hints
from ..tasks import open_problem
from ..tasks.csmri import CSMRI, MaskedFourier, mirrored
from .base import Baseline


class MRIBaseline(Baseline):
    """A method for single-coil MRI of real images in [0, 1]."""

    serves = frozenset({"csmri"})

    @torch.no_grad()
    def __call__(self, y: Tensor, physics: Physics) -> Tensor:
        """Reconstruct; the imaginary part of the result is zero."""
        if not CSMRI().accepts(physics):
            raise Incompatible(f"{self.name} needs deepinv's single-coil MRI, got a {type(physics).__name__}")
        problem = open_problem(y, physics, Hints(peak=1.0, real=True))
        assert isinstance(problem, MaskedFourier)
        return problem.export(self.reconstruct(problem).clamp(0, 1))

    @abstractmethod
    def reconstruct(self, problem: MaskedFourier) -> Tensor:
        """Real images (B, 1, H, W)."""


def for_real_images(problem: MaskedFourier) -> tuple[Tensor, Tensor]:
    """Weights and data of each frequency together with its mirror image, which is its conjugate in real images."""
    weights, data = problem.mask.square(), problem.mask * problem.y
    return (weights + mirrored(weights)) / 2, (data + mirrored(data).conj()) / 2


def fit(measured: tuple[Tensor, Tensor], v: Tensor, rho: Tensor) -> Tensor:
    """argmin ½‖MFx − y‖² + ρ/2 ‖x − v‖² over real images, measured as `for_real_images` has it."""
    weights, data = measured
    rho = rho.clamp_min(1e-4)  # a division where nothing is sampled
    return real_ifft((data + rho * fft(v)) / (weights + rho))


def fft(x: Tensor) -> Tensor:
    """The orthonormal Fourier transform."""
    return torch.fft.fft2(x, norm="ortho")


def real_ifft(k: Tensor) -> Tensor:
    """The real part of its inverse."""
    return torch.fft.ifft2(k, norm="ortho").real
