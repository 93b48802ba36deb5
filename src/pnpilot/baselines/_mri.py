"""What the methods for single-coil MRI share."""

from __future__ import annotations

import torch
from torch import Tensor

from ..tasks.csmri import CSMRI, MaskedFourier, mirrored
from ._one_task import OneTask, noise_level


class MRIBaseline(OneTask[MaskedFourier]):
    """A method for single-coil MRI of real images in [0, 1]."""

    serves = frozenset({"csmri"})
    task = CSMRI
    physics_name = "deepinv's single-coil MRI"

    @staticmethod
    def conditions(problem: MaskedFourier) -> list[dict[str, float]]:
        """Acceleration, and noise level on the 0-255 scale."""
        accelerations = problem.mask[0].numel() / problem.measurements
        pairs = zip(accelerations.tolist(), (255 * noise_level(problem)).tolist(), strict=True)
        return [{"acceleration": acceleration, "sigma": sigma} for acceleration, sigma in pairs]


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
