"""How strong the noise of photons is in a picture: the gain of the sensor and its read noise, from the picture alone.

Of photons, bright pixels have more noise than dark ones: variance = gain·mean + σ². Where there is little detail, the
highest frequencies of a small block are noise alone, and tell its variance; all blocks together tell the line.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import require

SIDE = 8
"""Side of a block in pixels."""
HIGH = 9
"""Frequencies of a block whose numbers add up to this or more are high: 21 of 64."""
BLOCKS = 40_000
"""Blocks lie apart as far as it takes for there to be no more than these."""
GROUPS = 32
"""Groups of blocks of like brightness, of equal size."""
SHARE = 0.3
"""Of each group, this share of the blocks is taken to be free of detail."""
FITS = 20
"""Rounds of fitting the line, with weights from the round before."""
DARKEST = 0.1
"""Groups with less than this share of the usual variance weigh no more: few photons are not normally distributed."""
SURE = 3.0
"""A slope that is smaller than this many times its error may be chance."""


class PhotonNoise(NamedTuple):
    """Noise of variance gain·mean + σ². Where no such line shows the gain is zero."""

    gain: float
    sigma: float


def estimated_gain(picture: Tensor, sigma: float | None = None) -> PhotonNoise:
    """Gain and read noise of a picture (C, H, W), NaN if it is too small or flat to tell; of which σ may be known."""
    require(picture.ndim == 3 and not picture.is_complex(), "the noise of photons shows in real pictures (C, H, W)")
    mean, variance = _blocks(picture)
    if len(mean) < 4 * GROUPS:
        return PhotonNoise(math.nan, math.nan)
    order = mean.argsort()
    groups = [(mean[part], variance[part]) for part in order.tensor_split(GROUPS)]
    level = torch.stack([brightness.mean() for brightness, _ in groups])
    found = torch.stack([spread.quantile(SHARE) for _, spread in groups]) / _quantile()
    return _line(level, found, sigma)


def _blocks(picture: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and noise variance of the blocks of a picture, but for those that are flat, or touch where it is cut off."""
    _, height, width = picture.shape
    if min(height, width) < SIDE:
        return torch.empty(0), torch.empty(0)
    apart = max(SIDE // 2, math.ceil((picture.numel() / BLOCKS) ** 0.5))
    blocks = picture.double().unfold(-2, SIDE, apart).unfold(-2, SIDE, apart).reshape(-1, SIDE, SIDE)
    mean = blocks.mean((1, 2))
    basis = _cosines().to(blocks)
    frequency = torch.arange(SIDE)
    high = (frequency[:, None] + frequency >= HIGH).to(blocks.device)
    variance = (basis @ blocks @ basis.T)[:, high].square().mean(1)
    # A sensor that is full gives the same number for whatever is brighter.
    brightest = picture.max().double()
    full = (blocks == brightest).any(2).any(1) if (picture == brightest).sum() > SIDE else mean.isnan()
    told = (variance > 0) & ~full
    return mean[told], variance[told]


def _line(level: Tensor, found: Tensor, sigma: float | None) -> PhotonNoise:
    """The line through variances whose errors are proportional to them, with neither part below zero."""
    ones = torch.ones_like(level)
    if sigma is not None:
        (gain,), _ = _fitted(level[:, None], found - sigma**2, sigma**2)
        return PhotonNoise(max(gain, 0.0), sigma)
    (gain, offset), error = _fitted(torch.stack([level, ones], 1), found)
    if gain <= SURE * error:
        (offset,), _ = _fitted(ones[:, None], found)
        return PhotonNoise(0.0, offset**0.5)
    if offset < 0:
        (gain,), _ = _fitted(level[:, None], found)
    return PhotonNoise(gain, max(offset, 0.0) ** 0.5)


def _fitted(columns: Tensor, found: Tensor, known: float = 0.0) -> tuple[list[float], float]:
    """Factors of the columns that give what was found, and the error of the first; `known` is left out of it."""
    total = found + known
    fitted = total.median().expand_as(found)
    for _ in range(FITS):
        # What lies far above the line is detail.
        size = fitted.clamp_min(DARKEST * total.median())
        weight = 1 / (size.square() + (10 * (total - fitted).clamp_min(0)).square())
        precision = columns.T @ (weight[:, None] * columns)
        solved = torch.linalg.lstsq(precision, columns.T @ (weight * found)).solution
        fitted = columns @ solved + known
    spread = (weight * (total - fitted).square()).sum() / (len(found) - columns.shape[1])
    return solved.tolist(), (spread * torch.linalg.pinv(precision)[0, 0]).sqrt().item()


def _cosines() -> Tensor:
    """The orthonormal cosine transform of a block's side."""
    place = torch.arange(SIDE, dtype=torch.float64)
    waves = torch.cos(torch.pi / SIDE * (place + 0.5) * place[:, None]) * (2 / SIDE) ** 0.5
    waves[0] /= 2**0.5
    return waves


def _quantile() -> float:
    """The quantile `SHARE` of the mean of as many squared normal numbers, by Wilson and Hilferty."""
    count = sum(row + column >= HIGH for row in range(SIDE) for column in range(SIDE))
    normal = 2**0.5 * torch.erfinv(torch.tensor(2 * SHARE - 1)).item()
    return (1 - 2 / (9 * count) + normal * (2 / (9 * count)) ** 0.5) ** 3
