"""What the methods for single-coil MRI share."""

from __future__ import annotations

import torch
from torch import Tensor

from ..problems._kspace import mirrored
from ..problems.masked_fourier import MaskedFourier
from ..tasks.csmri import CSMRI
from ._one_task import OneTask, noise_level


class MRIBaseline(OneTask[MaskedFourier]):
    """A method for single-coil MRI of real images in [0, 1]."""

    serves = frozenset({"csmri"})
    task = CSMRI
    problem = MaskedFourier
    physics_name = "deepinv's single-coil MRI"

    @staticmethod
    def conditions(problem: MaskedFourier) -> list[dict[str, float]]:
        """Acceleration, and noise level on the 0-255 scale."""
        accelerations = problem.mask[0].numel() / problem.measurements
        pairs = zip(accelerations.tolist(), (255 * noise_level(problem)).tolist(), strict=True)
        return [{"acceleration": acceleration, "sigma": sigma} for acceleration, sigma in pairs]


def for_real_images(problem: MaskedFourier) -> tuple[Tensor, Tensor]:
    """Weights and data, averaged over each frequency and its mirror image: conjugates if the image is real."""
    weights, data = problem.mask.square(), problem.mask * problem.y
    return (weights + mirrored(weights)) / 2, (data + mirrored(data).conj()) / 2


def fit(measured: tuple[Tensor, Tensor], v: Tensor, rho: Tensor) -> Tensor:
    """argmin ½‖MFx − y‖² + ρ/2 ‖x − v‖² over real images; `measured` is from `for_real_images`."""
    weights, data = measured
    rho = rho.clamp_min(1e-4)  # or it divides by zero where nothing is sampled
    return real_ifft((data + rho * fft(v)) / (weights + rho))


def fft(x: Tensor) -> Tensor:
    """The orthonormal Fourier transform."""
    return torch.fft.fft2(x, norm="ortho")


def real_ifft(k: Tensor) -> Tensor:
    """The real part of the inverse transform."""
    return torch.fft.ifft2(k, norm="ortho").real
