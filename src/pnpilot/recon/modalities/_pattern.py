"""Diffraction patterns of one image that are ready for the model, and what their numbers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from deepinv.physics import Physics
from torch import Tensor

from ...errors import require
from ...io.readers._diffraction import AMPLITUDES, INTENSITIES
from ...physics import CodedDiffraction, ShotNoise
from ...physics.coded_diffraction import back, fields
from ..prepared import Prepared

TRIED = 40
"""Iterations without a prior that show which reading of the numbers fits."""
CLEARLY = 0.7
"""A reading that leaves less than this share of what another leaves fits better."""
HARDLY = 0.85
"""Of a reading that leaves more than this share, it may be that neither is right."""
SPECKLE = 1.8
"""The mean square of speckle over its squared mean: 4/π for amplitudes, up to 1.6 with much noise; for intensities 2,
and with noise more."""
PLACES = {False: "corner", True: "middle"}
TINY = 1e-8


@dataclass(frozen=True)
class Patterns(Prepared):
    """Amplitudes of one image behind its masks."""

    number: int
    y: Tensor = field(repr=False)
    """Amplitudes (masks, H, W), the zero frequency in the corner."""
    masks: Tensor = field(repr=False)
    """Of modulus one (masks, H, W)."""
    alpha: float | None = None
    """The strength of shot noise in the units of the amplitudes, for `ShotNoise`; None: not told."""
    said: dict[str, tuple[bool, str]] = field(default_factory=dict)

    @property
    def kind(self) -> tuple[object, ...]:
        """Sizes, and whether the noise is known."""
        return tuple(self.y.shape), self.alpha is None

    @staticmethod
    def batch(images: Sequence[Patterns]) -> tuple[Tensor, Physics]:
        """Every image behind its own masks, and with its own noise."""
        masks = torch.stack([image.masks for image in images])
        alphas = [image.alpha for image in images if image.alpha is not None]
        noise = ShotNoise(torch.tensor(alphas)) if alphas else None
        return torch.stack([image.y for image in images]), CodedDiffraction(masks, noise)

    def finished(self, image: Tensor) -> np.ndarray:
        """The real image."""
        return image[0].real.numpy()

    def nothing(self) -> np.ndarray:
        """Zeros."""
        return np.zeros(tuple(self.y.shape[-2:]), np.float32)


class Reading(NamedTuple):
    """What the numbers of a file are."""

    quantity: str
    """Amplitudes or intensities."""
    centred: bool
    """Whether the zero frequency is in the middle."""
    told: str = ""
    """A sentence on it."""

    def amplitudes(self, numbers: Tensor) -> Tensor:
        """Amplitudes with the zero frequency in the corner, whatever they were."""
        plain = torch.fft.ifftshift(numbers, dim=(-2, -1)) if self.centred else numbers
        return plain.clamp_min(0).sqrt() if self.quantity == INTENSITIES else plain


def read(numbers: Tensor, masks: Tensor, quantity: str | None) -> Reading:
    """The reading of patterns (masks, H, W) that an image explains best; `quantity` is what the file's names tell."""
    # Shot noise may leave intensities below zero, and amplitudes never.
    negative = bool((numbers < 0).any())
    require(not (negative and quantity == AMPLITUDES), "patterns are called amplitudes, and some are negative")
    known = INTENSITIES if negative else quantity
    left = {
        (kind, centred): left_over(Reading(kind, centred).amplitudes(numbers), masks)
        for kind in ([known] if known else [AMPLITUDES, INTENSITIES])
        for centred in (False, True)
    }
    chosen, centred = min(left, key=lambda way: left[way])
    other = min((share for (kind, _), share in left.items() if kind != chosen), default=np.inf)
    by_speckle = left[chosen, centred] > CLEARLY * other
    spread = float(numbers.square().mean() / numbers.mean().square())
    if by_speckle:
        chosen = AMPLITUDES if spread < SPECKLE else INTENSITIES
        centred = left[chosen, True] < left[chosen, False]
    best, elsewhere = left[chosen, centred], left[chosen, not centred]
    told = f"{chosen} with the zero frequency in the {PLACES[centred]}: that leaves {_share(best)} unexplained"
    if other < np.inf:
        told += f", as {AMPLITUDES if chosen == INTENSITIES else INTENSITIES} {_share(other)}"
    told += f", with the zero frequency in the {PLACES[not centred]} {_share(elsewhere)}"
    if by_speckle:
        told += f"; their mean square is {spread:.2f} times the square of their mean, as of {chosen}"
    if best > HARDLY * elsewhere:
        told += "; nothing explains them well: do they belong to these masks?"
    return Reading(chosen, centred, f"patterns are taken for {told}")


def left_over(amplitudes: Tensor, masks: Tensor) -> float:
    """What no real and non-negative image explains of amplitudes (masks, H, W), over how much they vary."""
    y = amplitudes[None] / amplitudes.square().mean().sqrt().clamp_min(TINY)
    x = torch.ones_like(masks[None, :1])
    for _ in range(TRIED):
        field = fields(masks[None], x)
        x = x - back(masks[None], field * (1 - y / field.abs().clamp_min(TINY)))
        x = x.real.clamp_min(0).to(x.dtype)
    wrong = fields(masks[None], x).abs() - y
    return float(wrong.square().mean().sqrt() / y.std().clamp_min(TINY))


def _share(part: float) -> str:
    return f"{100 * part:.2g} %"
