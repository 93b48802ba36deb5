"""Fourier transforms between images and any places in k-space, by finufft on the CPU; gradients pass through."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import BadInput

EXACT = 1e-7
"""Relative error of the transforms: that of single precision, in which images are."""
KERNEL = 1e-9
"""Relative error of what is computed once."""


def samples_of(images: Tensor, trajectory: Tensor) -> Tensor:
    """Σ_r x(r) e^{-2πi k·r} / √(HW) for images (number, H, W): (number, samples). r is counted from [H//2, W//2].

    The trajectory (samples, 2) is in cycles per pixel, rows first.
    """
    return _Samples.apply(images, trajectory)


def images_of(samples: Tensor, trajectory: Tensor, sizes: tuple[int, int]) -> Tensor:
    """The adjoint of `samples_of`."""
    return _Images.apply(samples, trajectory, sizes)


def spectrum(trajectory: Tensor, weights: Tensor, sizes: tuple[int, int]) -> Tensor:
    """AᴴWA as a filter (2H, 2W): of images padded to twice their size by zeros at the end, and cut again (Toeplitz).

    It needs no trajectory any more, and runs on a GPU.
    """
    height, width = sizes
    strengths = weights.double().cpu().numpy().astype(np.complex128)
    shape = (2 * height, 2 * width)
    found = library().nufft2d1(*_radians(trajectory), strengths, shape, isign=1, eps=KERNEL)
    found[0], found[:, 0] = 0, 0  # no two pixels are so far from each other; without them, the filter is real
    real = np.fft.fft2(np.fft.ifftshift(found)).real / (height * width)
    return torch.from_numpy(real.astype(np.float32)).to(weights.device)


def library() -> Any:
    """finufft, imported when it is first needed."""
    try:
        import finufft
    except ImportError as error:
        raise BadInput("finufft transforms along trajectories: pip install 'pnpilot[noncartesian]'") from error
    return finufft


class _Samples(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, trajectory: Tensor) -> Tensor:
        ctx.trajectory, ctx.sizes = trajectory, tuple(images.shape[-2:])
        found = library().nufft2d2(*_radians(trajectory), _array(images), isign=-1, eps=EXACT)
        return _tensor(found / math.sqrt(math.prod(ctx.sizes)), images)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return _Images.apply(gradients[0], ctx.trajectory, ctx.sizes), None


class _Images(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, samples: Tensor, trajectory: Tensor, sizes: tuple[int, int]) -> Tensor:
        ctx.trajectory = trajectory
        found = library().nufft2d1(*_radians(trajectory), _array(samples), sizes, isign=1, eps=EXACT)
        return _tensor(found / math.sqrt(math.prod(sizes)), samples)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return _Samples.apply(gradients[0], ctx.trajectory), None, None


def _array(values: Tensor) -> np.ndarray:
    return np.ascontiguousarray(values.detach().resolve_conj().cpu().numpy(), np.complex128)


def _tensor(found: np.ndarray, like: Tensor) -> Tensor:
    return torch.from_numpy(found).to(like)


def _radians(trajectory: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns in radians per pixel."""
    radians = (2 * math.pi * trajectory.double()).cpu().numpy()
    return np.ascontiguousarray(radians[:, 0]), np.ascontiguousarray(radians[:, 1])
