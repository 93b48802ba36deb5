"""An image that is ready for the model, and batches of such."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from deepinv.physics import MRI, GaussianNoise, MultiCoilMRI, Physics, ZeroNoise
from torch import Tensor

from ..physics import Sense


@dataclass(frozen=True)
class Prepared:
    """One image, ready for the model."""

    number: int
    y: Tensor = field(repr=False)
    """Centred k-space (coils, H, W)."""
    mask: Tensor = field(repr=False)
    maps: Tensor | None = field(default=None, repr=False)
    """Coil maps (sets, coils, H, W); None: a single coil that sees everything."""
    held: float = 0.0
    turn: Tensor | None = field(default=None, repr=False)
    """The phase (sets, H, W) that was put into the maps, and belongs to the image."""
    calibration: str = ""
    """What the maps are from."""
    sigma: float | None = None
    """The noise level of each part of k-space, where a noise scan told it."""
    said: dict[str, tuple[bool, str]] = field(default_factory=dict)
    """What was done on the way, or left out, and why."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to reconstruct from."""
        return not bool(self.y.any())

    @property
    def kind(self) -> tuple[Any, ...]:
        """Images of one kind can be in one batch."""
        sense = self.maps is not None and (len(self.maps) > 1 or self.held > 0)
        return tuple(self.y.shape), None if self.maps is None else len(self.maps), self.sigma is None, sense


def batch(images: list[Prepared]) -> tuple[Tensor, Physics]:
    """Data and physics of images of one kind."""
    y = torch.stack([image.y for image in images])
    mask = torch.stack([image.mask for image in images])[:, None]
    size = (2, *mask.shape[-2:])
    levels = torch.tensor([image.sigma or 0.0 for image in images])
    noise = ZeroNoise() if images[0].sigma is None else GaussianNoise(levels)  # the first declares nothing
    if images[0].maps is None:
        return y, MRI(mask=mask, img_size=size, noise_model=noise)
    maps = torch.stack([image.maps for image in images if image.maps is not None])
    if images[0].kind[-1]:
        return y, Sense(mask, maps, torch.tensor([image.held for image in images]), noise_model=noise)
    return y, MultiCoilMRI(mask=mask, coil_maps=maps[:, 0], img_size=size, noise_model=noise)
