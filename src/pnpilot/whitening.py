"""The noise of coils: how strong and how correlated it is, and data and maps in which it is neither."""

from __future__ import annotations

import torch
from torch import Tensor

from .errors import require
from .problems._kspace import median_level, outermost

SHARE = 0.1
"""The share of the samples that are looked at: more than for one level, as there are many numbers to find."""
COPIES = "the covariance is not positive definite: two coils may be copies of each other"
ROUNDS = 10
"""Rounds of dropping the samples that look least like noise."""
NEAR = 2.0
"""Nearly all noise is within twice its median distance."""


def coil_covariance(kspace: Tensor, mask: Tensor | None = None) -> Tensor:
    """The covariance (coils, coils) of the noise in centred k-space (coils, H, W): of each of its two parts.

    It is read from the outermost samples, where there is least of the image, and from those that look like noise.
    A noise scan, if there is one, tells it better: N = `scan` (coils, samples), covariance = N Nᴴ / (2·samples).
    """
    require(kspace.is_complex() and kspace.ndim == 3, f"k-space must be complex (coils, H, W), got {_shape(kspace)}")
    measured = kspace.new_ones(kspace.shape[1:]).real if mask is None else mask.to(kspace.real)
    measured = measured[0, 0] if measured.ndim == 4 else measured  # as a physics holds it
    require(measured.shape == kspace.shape[1:], f"the mask {_shape(measured)} does not fit k-space {_shape(kspace)}")
    require(bool((kspace * measured).any()), "k-space is zero wherever the mask samples it")
    unshifted = [torch.fft.ifftshift(part, dim=(-2, -1)) for part in (kspace, measured)]
    (flags,) = outermost(unshifted[0][None], unshifted[1][None, None], SHARE)
    return noise_covariance(unshifted[0][:, flags])


def noise_covariance(noise: Tensor) -> Tensor:
    """The covariance (coils, coils) of each part of samples (coils, number) of which most are noise."""
    coils, count = noise.shape
    require(count >= 4 * coils, f"{count} outermost samples are too few for the covariance of {coils} coils")
    levels = torch.stack([median_level(coil) for coil in noise])
    require(bool((levels > 0).all()), "k-space has a coil without noise: is it empty?")
    noise, near = noise / levels[:, None], torch.ones(count, dtype=torch.bool, device=noise.device)
    for round_number in range(ROUNDS + 1):
        found = noise[:, near] @ noise[:, near].mH / (2 * near.sum())
        solved, info = torch.linalg.solve_ex(found, noise)
        require(int(info) == 0, COPIES)
        distance = (noise.conj() * solved).real.sum(0)
        # The half that fits best shows what is noise; at last all that looks like it counts.
        near = distance <= distance.median() * (1 if round_number < ROUNDS - 1 else NEAR)
    # The samples that were left out were the largest: the levels are those of the medians.
    spread = found.diagonal().real.sqrt()
    return found * (levels / spread)[:, None] * (levels / spread)


def whitened(kspace: Tensor, maps: Tensor, covariance: Tensor) -> tuple[Tensor, Tensor]:
    """K-space and maps (..., coils, H, W) in which noise has level one in all coils, and no correlation.

    The image behind them is the same, in the same units.
    """
    coils = kspace.shape[-3]
    fits = maps.shape[-3] == coils and covariance.shape == (coils, coils) and kspace.is_complex() and maps.is_complex()
    require(fits, f"k-space {_shape(kspace)}, maps {_shape(maps)} and covariance {_shape(covariance)} do not agree")
    factor, info = torch.linalg.cholesky_ex(covariance)
    require(int(info) == 0, COPIES)
    inverse = torch.linalg.solve_triangular(factor, torch.eye(coils).to(factor), upper=False)
    kspace, maps = (torch.einsum("dc,...chw->...dhw", inverse.to(part), part) for part in (kspace, maps))
    return kspace, maps


def _shape(tensor: Tensor) -> str:
    return f"{tensor.dtype} {tuple(tensor.shape)}"
