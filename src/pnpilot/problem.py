"""The inverse problem as a solver sees it: a start, a data step, and nothing about where the data came from."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from .denoisers import Denoiser
from .denoisers.base import half_precision
from .errors import BadInput
from .types import Denoise, per_sample

SIGNED = 0.1
"""An image with a larger share of its energy below zero is not taken for a non-negative one."""
GAUSSIAN_MEDIAN = 0.6745
"""Median of the absolute value of a standard normal variable."""


@dataclass(frozen=True)
class Hints:
    """What a user may tell about the images; None means: find out."""

    peak: float | Tensor | None = None
    """Largest value of an image, in the units of the data. Default: estimated from the data."""
    sigma_n: float | Tensor | Literal["estimate"] | None = None
    """Noise level, in the units of the data. Default: what the physics declares, and estimated where it does not."""
    real: bool | None = None
    """Whether images are real and non-negative. Default: what the data of each image say, where they can."""


@dataclass(frozen=True)
class Units:
    """How a batch of images is measured inside: in units of its peaks."""

    peak: Tensor
    """(B,): largest value of each image, in the user's units."""
    peak_known: bool
    """Whether the peak was told, so that nothing may exceed it, or estimated."""
    sigma_n: Tensor | None
    """(B,): noise level of the normalised data in units of the peak, or None if nobody knows."""
    real: Tensor
    """(B,), on the CPU: whether each image is real and non-negative; the denoiser then sees its real part alone."""

    @classmethod
    def of(cls, hints: Hints, estimate: Tensor, sigma: Any, gain: Tensor) -> Units:
        """Units for images like `estimate` (B, ...) behind operators of norm `gain` (B,); hints outrank `sigma`."""
        peak = _peak(hints.peak, estimate)
        sigma = None if _unknown(hints.sigma_n) else hints.sigma_n if hints.sigma_n is not None else sigma
        real = torch.full((len(peak),), hints.real is not False)
        return cls(peak, hints.peak is not None, _noise(sigma, peak * gain), real)

    def scale(self, y: Tensor) -> Tensor:
        """Data in units of the peak."""
        return y / per_sample(self.peak, y)

    def unscale(self, image: Tensor) -> Tensor:
        """An image in the user's units."""
        return image * per_sample(self.peak, image)

    def select(self, index: Tensor) -> Units:
        """The units of the images at these positions."""
        sigma = None if self.sigma_n is None else self.sigma_n[index]
        return Units(self.peak[index], self.peak_known, sigma, self.real[index.cpu()])

    def to(self, device: torch.device) -> Units:
        """The same on another device; `real` stays on the CPU."""
        sigma = None if self.sigma_n is None else self.sigma_n.to(device)
        return Units(self.peak.to(device), self.peak_known, sigma, self.real)


class Problem(ABC):
    """A batch of inverse problems with their data, in units of each image's peak.

    Linear operators are normalised, so that a penalty or a step size means the same whatever the operator. Complex
    images are complex tensors.
    """

    offers: frozenset[str]
    """What a solver may ask for: "prox", "grad", "linear" (A, A_adjoint and measurements)."""
    per_image: tuple[str, ...] = ("y",)
    """Names of the attributes whose first axis is the batch."""
    measurements: Tensor
    """(B,): how many numbers were measured."""

    def __init__(self, y: Tensor, units: Units) -> None:
        self.y, self.units = y, units

    @abstractmethod
    def x0(self) -> Tensor:
        """The image to start from (B, C, H, W)."""

    def prox(self, v: Tensor, mu: Tensor) -> Tensor:
        """argmin_z D(z) + μ/2 ‖z − v‖², with mu (B,)."""
        raise NotImplementedError

    def grad(self, x: Tensor) -> Tensor:
        """∇D(x)."""
        raise NotImplementedError

    def A(self, x: Tensor) -> Tensor:
        """The linear operator, of norm one."""
        raise NotImplementedError

    def A_adjoint(self, y: Tensor) -> Tensor:
        """Its adjoint."""
        raise NotImplementedError

    def measured(self) -> list[Tensor]:
        """The measurement as images, for the observation of the paper."""
        return [self.x0()]

    @abstractmethod
    def misfit(self, x: Tensor) -> Tensor:
        """How far the image is from its data, relative to the data (B,)."""

    @abstractmethod
    def export(self, image: Tensor) -> Tensor:
        """The image in the user's units and layout."""

    def estimated_noise(self) -> Tensor | None:
        """The noise level that the data show (B,), or None if they cannot.

        In data that form an image, neighbours differ little: the median of what the diagonal Haar wavelet leaves.
        """
        if self.y.ndim < 4 or min(self.y.shape[-2:]) < 8:
            return None
        y = torch.view_as_real(self.y).movedim(-1, 1) if self.y.is_complex() else self.y
        y = y[..., : y.shape[-2] // 2 * 2, : y.shape[-1] // 2 * 2]
        corners = [y[..., row::2, column::2] for row in (0, 1) for column in (0, 1)]
        diagonal = ((corners[0] - corners[1] - corners[2] + corners[3]) / 2).abs().flatten(1)
        # Where nothing was measured there is no noise.
        measured = torch.stack([corner != 0 for corner in corners]).all(0).flatten(1)
        medians = diagonal.masked_fill(~measured, torch.nan).nanmedian(1).values
        return None if bool(medians.isnan().any()) else medians / GAUSSIAN_MEDIAN

    def know_noise(self) -> None:
        """Estimate the noise level unless it was told."""
        if self.units.sigma_n is None:
            self.units = replace(self.units, sigma_n=self.estimated_noise())

    def select(self, index: Tensor) -> Problem:
        """The problems at these positions of the batch, in this order; positions may repeat."""
        chosen = copy.copy(self)
        chosen.units = self.units.select(index)
        for name in self.per_image:
            setattr(chosen, name, getattr(self, name)[index])
        return chosen

    def to(self, device: torch.device) -> Problem:
        """The same problems on another device."""
        moved = copy.copy(self)
        moved.units = self.units.to(device)
        for name in self.per_image:
            setattr(moved, name, getattr(self, name).to(device))
        return moved

    def __len__(self) -> int:
        return self.y.shape[0]

    def all_active(self) -> Tensor:
        """A true flag per image (B,)."""
        return torch.ones(len(self), dtype=torch.bool, device=self.y.device)

    def prior(self, denoiser: Denoiser) -> Denoise:
        """The denoiser as these images need it: real part or complex, bounds, bf16 on a GPU."""
        real = self.units.real

        def run(v: Tensor, sigma: Tensor, *, signed: bool = False) -> Tensor:
            call = denoiser.signed if signed and not v.is_complex() else denoiser
            single = v.to(torch.complex64 if v.is_complex() else torch.float32)
            with half_precision(v.device, denoiser.bf16):
                return call(single, sigma).to(v.dtype)

        def denoise(v: Tensor, sigma: Tensor) -> Tensor:
            if real.all():
                return self.image(run(v.real, sigma))
            if not real.any():
                return run(v, sigma, signed=True)
            # Both kinds in one batch: each as if it were alone.
            first, second = real.nonzero().flatten().to(v.device), (~real).nonzero().flatten().to(v.device)
            parts = torch.cat(
                [run(v[first].real, sigma[first]).to(v.dtype), run(v[second], sigma[second], signed=True)]
            )
            return self.image(parts[torch.cat([first, second]).argsort()])

        return denoise

    def image(self, x: Tensor) -> Tensor:
        """An iterate as an image: real and within its bounds where images are real."""
        real = self.units.real
        if not real.any():
            return x
        bounded = x.real.clamp(0, 1 if self.units.peak_known else None)
        return bounded if real.all() else torch.where(per_sample(real.to(x.device), x), bounded.to(x.dtype), x)


def _peak(peak: float | Tensor | None, estimate: Tensor) -> Tensor:
    if peak is not None:
        values = one_each(peak, estimate.real, "peaks")
        if not bool((torch.isfinite(values) & (values > 0)).all()):
            raise BadInput(f"the peak must be a positive number, got {peak}")
        return values
    # A quantile, not the maximum: one bright pixel of noise must not set the scale.
    values = torch.quantile(estimate.abs().flatten(1), 0.999, dim=1)
    return torch.where(values > 0, values, 1.0)


def _unknown(sigma: Any) -> bool:
    if isinstance(sigma, str) and sigma != "estimate":
        raise BadInput(f"the noise level must be a number, or 'estimate', got {sigma!r}")
    return isinstance(sigma, str)


def _noise(sigma: Any, peak: Tensor) -> Tensor | None:
    if sigma is None:
        return None
    values = one_each(sigma, peak, "noise levels")
    if not bool((torch.isfinite(values) & (values >= 0)).all()):
        raise BadInput(f"the noise level must be a number that is zero or more, got {values.tolist()}")
    return values / peak


def one_each(given: Any, like: Tensor, what: str) -> Tensor:
    """One number per image (B,), in the type and on the device of `like` (B, ...), from a number or as many."""
    try:
        values = torch.as_tensor(given, dtype=like.dtype, device=like.device).reshape(-1)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BadInput(f"{what} must be numbers, got {given!r}") from error
    if values.numel() not in (1, len(like)):
        raise BadInput(f"{values.numel()} {what} for {len(like)} images: give one, or one per image")
    return values.expand(len(like))


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
    y = y.to(torch.complex64 if y.is_complex() else torch.float32)
    if not bool(torch.isfinite(y).all()):
        count = int((~torch.isfinite(y)).sum())
        raise BadInput(f"{what} holds {count} NaN or infinite values; only finite numbers are accepted")
    if not bool(y.flatten(1).any(dim=1).all()):
        raise BadInput(f"{what} is all zeros for at least one image: there is nothing to reconstruct from")
    return y


def looks_non_negative(image: Tensor, grain: Tensor) -> Tensor:
    """Whether an estimate (B, ...) whose noise has energy `grain` (B,) has little below zero beyond that noise (B,)."""
    below = energy(image.clamp_max(0)) - grain / 2
    return below < SIGNED * (energy(image) - grain).clamp_min(0)


def energy(values: Tensor) -> Tensor:
    """Sum of squared moduli per image (B,)."""
    return values.abs().square().flatten(1).sum(1)


def relative_norm(difference: Tensor, reference: Tensor) -> Tensor:
    """‖difference‖ / ‖reference‖ per image (B,)."""
    return difference.flatten(1).norm(dim=1) / reference.flatten(1).norm(dim=1)


def _describe(y: Any) -> str:
    return f"{y.dtype} of shape {tuple(y.shape)}" if isinstance(y, Tensor) else f"a {type(y).__name__}"
