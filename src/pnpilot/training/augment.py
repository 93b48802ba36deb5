"""Random changes to photographs, so that training also sees smooth, dark, pale and cut-out images."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from ..types import per_sample

EDGE = 60.0
"""Steepness of the edge of a cut-out object: its width is a few pixels."""


def augmented(images: Tensor, generator: torch.Generator) -> Tensor:
    """Images (B, 1, H, W), each change with a chance of one half: size, brightness, contrast, a cut-out on black."""
    device = images.device
    resize, shade, pale, cut = torch.rand(4, len(images), generator=generator, device=device) < 0.5
    zoom, gamma, contrast, base, *place = torch.rand(9, len(images), generator=generator, device=device)
    images = _resized(images, torch.where(resize, 2 * 0.3**zoom, 1.0))
    images = images ** per_sample(torch.where(shade, torch.exp(1.4 * gamma - 0.7), 1.0), images)
    images = per_sample(base, images).lerp(images, per_sample(torch.where(pale, 0.2**contrast, 1.0), images))
    return torch.where(per_sample(cut, images), images * _object(images, place), images)


def _resized(images: Tensor, zoom: Tensor) -> Tensor:
    """The middle of each image at `zoom` (B,) times its size, mirrored where it becomes too small."""
    affine = torch.zeros(len(images), 2, 3, device=images.device)
    affine[:, 0, 0] = affine[:, 1, 1] = 1 / zoom
    grid = F.affine_grid(affine, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode="bicubic", padding_mode="reflection", align_corners=False).clamp(0, 1)


def _object(images: Tensor, place: Sequence[Tensor]) -> Tensor:
    """An ellipse of ones with soft edges on zeros; its centre, axes and direction by five numbers from 0 to 1."""
    height, width = images.shape[-2:]
    rows = torch.linspace(-1, 1, height, device=images.device)[:, None]
    columns = torch.linspace(-1, 1, width, device=images.device)[None]
    across, along, first, second, turn = (per_sample(number, images[:, 0]) for number in place)
    rows, columns = rows - 0.4 * (across - 0.5), columns - 0.4 * (along - 0.5)
    cosine, sine = torch.cos(math.pi * turn), torch.sin(math.pi * turn)
    one = (cosine * rows + sine * columns) / (0.5 + 0.6 * first)
    other = (cosine * columns - sine * rows) / (0.5 + 0.6 * second)
    return torch.sigmoid(EDGE * (1 - torch.hypot(one, other)))[:, None]
