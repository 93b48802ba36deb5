"""A first look at a measurement: whether it can be used, and what it shows of noise and sign."""

from __future__ import annotations

from typing import Any

import torch
from deepinv.physics import Physics
from torch import Tensor

from ..errors import BadInput
from ..types import named

SIGNED = 0.1
"""An image with a larger share of its energy below zero does not count as non-negative."""
GAUSSIAN_MEDIAN = 0.6745
"""Median of the absolute value of a standard normal variable."""
UNEXPLAINED = 3.0
"""What is so many times the noise is none."""
UNFIT = (RuntimeError, ValueError, TypeError, IndexError, AttributeError)
"""What operators raise for shapes that they do not take."""
LARGEST, SMALLEST = 1e15, 1e-15
"""Single precision cannot square and sum data beyond these."""


def checked_data(y: Tensor, what: str, channels: int | None = None) -> Tensor:
    """The measurement in single precision, which the denoiser works in, after a look at shape and values."""
    wanted = f"real (batch, {channels}, height, width)" if channels else "(batch, ...)"
    fits = isinstance(y, Tensor) and y.ndim >= 2
    if fits and channels is not None:
        fits = y.ndim == 4 and y.shape[1] == channels and not y.is_complex()
    if not fits:
        raise BadInput(f"{what} must be a tensor {wanted}, got {_describe(y)}")
    if y.numel() == 0:
        raise BadInput(f"{what} is empty: shape {tuple(y.shape)}")
    single = y.to(torch.complex64 if y.is_complex() else torch.float32)
    broken = ~torch.isfinite(single).flatten(1)
    if bool(broken.any()):
        count = int(broken.sum())
        raise BadInput(f"{what} holds {count} NaN or infinite values in {named(broken.any(1))}; all must be finite")
    size = single.abs().flatten(1).amax(1)
    if bool((size == 0).any()):
        raise BadInput(f"{what} is all zeros in {named(size == 0)}: there is nothing to reconstruct from")
    extreme = (size > LARGEST) | (size < SMALLEST)
    if bool(extreme.any()):
        raise BadInput(
            f"{what} in {named(extreme)} has a largest value of {size[extreme][0]:.3g}, beyond what single precision "
            f"can square: bring it to between {SMALLEST:g} and {LARGEST:g}"
        )
    return single


def noise_of(physics: Physics) -> Any:
    """The noise level that a physics declares, or None. ZeroNoise, deepinv's default, declares nothing.

    What is declared beside a gain is the part of the noise that does not come from photons, and not its level.
    """
    model = physics.noise_model
    return None if hasattr(model, "gain") else getattr(model, "sigma", None)


def noise_in_picture(y: Tensor) -> Tensor:
    """The noise level (B,) of data that form an image, or NaN where it does not show.

    Estimated by the median of the diagonal Haar coefficients, as neighbouring pixels differ little.
    """
    if y.ndim < 4 or min(y.shape[-2:]) < 8:
        return torch.full((len(y),), torch.nan, device=y.device)
    y = torch.view_as_real(y).movedim(-1, 1) if y.is_complex() else y
    y = y[..., : y.shape[-2] // 2 * 2, : y.shape[-1] // 2 * 2]
    corners = [y[..., row::2, column::2] for row in (0, 1) for column in (0, 1)]
    diagonal = ((corners[0] - corners[1] - corners[2] + corners[3]) / 2).abs().flatten(1)
    # Where nothing was measured there is no noise.
    measured = torch.stack([corner != 0 for corner in corners]).all(0).flatten(1)
    return diagonal.masked_fill(~measured, torch.nan).nanmedian(1).values / GAUSSIAN_MEDIAN


def looks_non_negative(image: Tensor, grain: Tensor) -> Tensor:
    """Whether an estimate (B, ...) whose noise has energy `grain` (B,) has little below zero beyond that noise (B,)."""
    below = energy(image.clamp_max(0)) - grain / 2
    return below < SIGNED * (energy(image) - grain).clamp_min(0)


def ignored(unused: Tensor, blind: Tensor, level: Tensor, name: str) -> list[str]:
    """A warning where the data (B, ...) that an operator of this name is blind for are more than noise (B,)."""
    numbers = blind.flatten(1).sum(1).clamp_min(1) * (2 if unused.is_complex() else 1)
    extra = (energy(unused) / numbers).sqrt() > UNEXPLAINED * level
    if not bool(extra.any()):
        return []
    return [
        f"the data of {named(extra)} are not zero where the {name} measures nothing, and are ignored there: do data "
        "and mask belong together?"
    ]


def product(a: Tensor, b: Tensor) -> Tensor:
    """Real inner product per image (B,)."""
    return (a.conj() * b).real.flatten(1).sum(1)


def energy(values: Tensor) -> Tensor:
    """Sum of squared moduli per image (B,)."""
    return values.abs().square().flatten(1).sum(1)


def _describe(y: Any) -> str:
    return f"{y.dtype} of shape {tuple(y.shape)}" if isinstance(y, Tensor) else f"a {type(y).__name__}"
