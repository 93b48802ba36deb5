"""A blurred picture that is ready for the model, and what its noise is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from deepinv.physics import GaussianNoise, Physics, PoissonGaussianNoise, ZeroNoise
from torch import Tensor
from torch.nn import functional as F

from ...physics import FramedBlur
from ...problems._data import noise_in_picture
from ...problems._gain import estimated_gain
from ..prepared import Prepared

ROUNDING = 12**-0.5
"""Noise of whole numbers, in units of their step."""
UNEVEN = 2.0
"""Noise whose variance differs by this much between dark and bright parts is taken for that of photons."""
DARK, BRIGHT = 0.05, 0.95
"""Shares of the pixels that are darker than what counts as the dark parts, and as the bright ones."""
CUT, COUNTS = 0.005, 0.8
"""Noise was cut off where more than this share of the pixels is zero, unless variance over mean is that of counts."""
BLOCK = 8
"""Side of the squares whose darkest tells how dark a picture gets, without its noise."""


class PixelNoise(NamedTuple):
    """Variance gain·(y − black) + σ² of the pixels y of a picture."""

    sigma: float
    """NaN where it does not show."""
    gain: float = 0.0
    black: float = 0.0


def noise_of_pixels(y: Tensor, step: float, photons: bool = True) -> tuple[PixelNoise, dict[str, tuple[bool, str]]]:
    """The noise of a picture (C, H, W) whose numbers are multiples of `step`, and what is said of it."""
    found = _line(y)
    shown = F.avg_pool2d(y, BLOCK).flatten() - found.black
    dark, bright = (shown.kthvalue(1 + int(share * (shown.numel() - 1))).values.item() for share in (DARK, BRIGHT))
    least = (ROUNDING * step) ** 2
    low, high = (max(found.gain * max(value, 0.0) + found.sigma**2, least) for value in (dark, bright))
    # Cut off at zero, the noise of dark parts is less whatever it is; counts are not cut off, they have a gain of one.
    cut = step > 0 and found.gain < COUNTS * step and float((y == 0).float().mean()) > CUT
    if photons and not cut and high > UNEVEN * low:
        origin = f"(brightness − {found.black:.4g})" if found.black else "brightness"
        read = f" + {found.sigma:.3g}²" if found.sigma else ""
        told = f"noise grows with brightness, as that of photons does: variance {found.gain:.3g}·{origin}{read}"
        return found, {"photons": (True, f"{told}; pixels count accordingly")}
    mean = (high if cut else found.gain * shown.mean().clamp_min(0).item() + found.sigma**2) ** 0.5
    sigma = max(noise_in_picture(y[None]).item() if np.isnan(mean) else mean, ROUNDING * step)
    said = "does not show" if np.isnan(sigma) else f"{sigma:.3g}, the same everywhere"
    return PixelNoise(sigma), {"noise": (True, f"noise level of the picture: {said}")}


def _line(y: Tensor) -> PixelNoise:
    """The line through the variances of a picture; NaN if it is too small or flat to tell.

    Cameras add a number to all pixels. Where a line would be below zero for dark ones, that is where it is zero.
    """
    gain, sigma = estimated_gain(y)
    if not (gain > 0 and sigma == 0):
        return PixelNoise(sigma, gain)
    darkest = torch.quantile(F.avg_pool2d(y, BLOCK).flatten()[:: y.numel() // 2**24 + 1], 0.01).item()
    slope, rest = estimated_gain(y - darkest)
    if not slope > 0 or darkest < rest**2 / slope:
        return PixelNoise(sigma, gain)
    return PixelNoise(0.0, slope, darkest - rest**2 / slope)


@dataclass(frozen=True)
class BlurredPicture(Prepared):
    """One picture. What it shows is larger by the reach of the blur: no boundary has to be made up."""

    number: int
    y: Tensor = field(repr=False)
    """(C, H, W), in the units of the file."""
    kernel: Tensor = field(repr=False)
    """(1 or C, h, w), of sum one."""
    noise: PixelNoise
    said: dict[str, tuple[bool, str]] = field(default_factory=dict)

    @property
    def kind(self) -> tuple[object, ...]:
        """Sizes, and which noise."""
        return tuple(self.y.shape), self.noise.gain > 0, np.isnan(self.noise.sigma)

    @staticmethod
    def batch(images: Sequence[BlurredPicture]) -> tuple[Tensor, Physics]:
        """The blur of a picture that reaches beyond its data on all sides."""
        y = torch.stack([image.y - image.noise.black for image in images])
        sigma, gain, _ = (torch.tensor(column) for column in zip(*(image.noise for image in images), strict=True))
        photons, silent = images[0].kind[1:]
        noise = PoissonGaussianNoise(gain, sigma) if photons else ZeroNoise() if silent else GaussianNoise(sigma)
        return y, FramedBlur(images[0].kernel[None], noise_model=noise)

    def finished(self, image: Tensor) -> np.ndarray:
        """Without the axis of colours where there is one colour; the border is cut by whoever asks."""
        pixels = (image + self.noise.black).numpy()
        return pixels if len(pixels) == 3 else pixels[0]

    def nothing(self) -> np.ndarray:
        """Black."""
        return self.finished(torch.zeros_like(self.y))
