"""What a user may tell about images, and the internal units of images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..errors import BadInput
from ..types import named, one_each, per_sample

MOST = 2**24
"""PyTorch takes quantiles of no more numbers than these."""
FAR_OFF = 1e4
"""A peak that is so many times too large or too small is a mistake."""


@dataclass(frozen=True)
class Hints:
    """What a user may tell about the images; None means: find out."""

    peak: float | Tensor | None = None
    """Largest value of an image, in the units of the data. Default: estimated from the data."""
    sigma_n: float | Tensor | Literal["estimate"] | None = None
    """Noise level, in the units of the data. Default: what the physics declares, and estimated where it does not."""
    real: bool | None = None
    """Whether images are real and non-negative. Default: what the data of each image show, where they can."""
    gain: float | Tensor | Literal["estimate"] | None = None
    """Variance over mean of data whose noise is that of photons. Default: what the physics declares."""

    def __post_init__(self) -> None:
        if not (self.real is None or isinstance(self.real, bool | np.bool_)):
            raise BadInput(f"real must be True or False, or None to find out, got {self.real!r}")


@dataclass(frozen=True)
class Units:
    """The internal units of a batch: each image is in units of its peak."""

    peak: Tensor
    """(B,): largest value of each image, in the user's units."""
    peak_known: bool
    """Whether the peak was given, so that nothing may exceed it, or estimated."""
    sigma_n: Tensor | None
    """(B,): noise level of the normalised data in units of the peak, or None if unknown."""
    real: Tensor
    """(B,), on the CPU: whether each image is real and non-negative; the denoiser then sees its real part alone."""
    guessed: bool = False
    """Whether `real` was judged from the data."""
    shown: Tensor | None = None
    """(B,): the noise level that the data show, whatever is said of it, in units of the peak; NaN where none shows."""

    @classmethod
    def of(cls, hints: Hints, estimate: Tensor, sigma: Any, gain: Tensor) -> Units:
        """Units for images like `estimate` (B, ...) behind operators of norm `gain` (B,); hints outrank `sigma`."""
        peak = _peak(hints.peak, estimate)
        sigma = None if _unknown(hints.sigma_n) else hints.sigma_n if hints.sigma_n is not None else sigma
        real = torch.full((len(peak),), hints.real is None or bool(hints.real))
        return cls(peak, hints.peak is not None, _noise(sigma, peak * gain), real)

    @cached_property
    def flags(self) -> Tensor:
        """`real` on the device of the data, copied once: at every iteration, a copy to a GPU would wait for it."""
        return self.real.to(self.peak.device)

    @cached_property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Places of the real images, places of the others, and the order that brings a batch so parted back."""
        places = self.flags.nonzero().flatten(), (~self.flags).nonzero().flatten()
        return *places, torch.cat(places).argsort()

    def showing(self, level: Tensor) -> Units:
        """The same with the noise level (B,) that the data show, which counts where none was given."""
        return replace(self, sigma_n=level if self.sigma_n is None else self.sigma_n, shown=level)

    def scale(self, y: Tensor) -> Tensor:
        """Data in units of the peak."""
        return y / per_sample(self.peak, y)

    def unscale(self, image: Tensor) -> Tensor:
        """An image in the user's units."""
        return image * per_sample(self.peak, image)

    def select(self, index: Tensor) -> Units:
        """The units of the images at these positions."""
        sigma, shown = (None if level is None else level[index] for level in (self.sigma_n, self.shown))
        return replace(self, peak=self.peak[index], sigma_n=sigma, real=self.real[index.cpu()], shown=shown)

    def to(self, device: torch.device) -> Units:
        """The same on another device; `real` stays on the CPU."""
        sigma, shown = (None if level is None else level.to(device) for level in (self.sigma_n, self.shown))
        return replace(self, peak=self.peak.to(device), sigma_n=sigma, shown=shown)


def _peak(peak: float | Tensor | None, estimate: Tensor) -> Tensor:
    if peak is not None:
        values = one_each(peak, estimate.real, "peaks")
        if not bool((torch.isfinite(values) & (values > 0)).all()):
            raise BadInput(f"the peak must be a positive number, got {peak}")
        found = _largest(estimate)
        wrong = (found > FAR_OFF * values) | (found * FAR_OFF < values)
        if bool(wrong.any()):
            raise BadInput(
                f"the peak given is {values[wrong][0]:.3g}, while the data of {named(wrong)} show about "
                f"{found[wrong][0]:.3g}: is it in the units of the data?"
            )
        return values
    return _largest(estimate)


def _largest(estimate: Tensor) -> Tensor:
    # A quantile, not the maximum: one bright pixel of noise must not set the scale. Of huge images some tell it.
    pixels = estimate.abs().flatten(1)
    values = torch.quantile(pixels[:, :: 1 + (pixels.shape[1] - 1) // MOST], 0.999, dim=1)
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
