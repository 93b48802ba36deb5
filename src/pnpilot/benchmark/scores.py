"""Scores of single images, and their summary in a row of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..devices import device_name
from ..metrics import psnr, ssim

SCORES = ("psnr", "ssim", "iterations", "seconds")
DIGITS, IMAGE_DIGITS = 4, 6
"""Decimals of means, and of the scores of images, which have more so that means are right."""


def scored(
    image: Tensor, truth: Tensor, iterations: Tensor, seconds: float, device: torch.device
) -> list[dict[str, Any]]:
    """The scores of each image of a batch; seconds are per image, on that device."""
    columns = zip(psnr(image, truth).tolist(), ssim(image, truth).tolist(), iterations.tolist(), strict=True)
    own = {"seconds": seconds, "device": device_name(device)}
    return [rounded({"psnr": p, "ssim": s, "iterations": n, **own}) for p, s, n in columns]


def rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers, rounded to the decimals that are kept."""
    return {key: round(value, IMAGE_DIGITS) if isinstance(value, float) else value for key, value in values.items()}


def summary(images: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A row: means, how many images they are over, their spreads, and the device."""
    devices = sorted({image["device"] for image in images if "device" in image})
    spreads = {"seeds": spread(images, "seed"), "draws": spread(images, "draw")}
    return {**means(images), "count": len(images), "spread": spreads, "device": " and ".join(devices)}


def means(images: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The mean of each score."""
    return {name: round(sum(image[name] for image in images) / len(images), DIGITS) for name in SCORES}


def spread(images: Sequence[Mapping[str, Any]], key: str) -> float | None:
    """How far apart the mean PSNRs of different seeds or draws are; None if there is only one."""
    found: dict[Any, list[float]] = {}
    for image in images:
        found.setdefault(image.get(key), []).append(image["psnr"])
    averages = [sum(values) / len(values) for values in found.values()]
    return round(max(averages) - min(averages), DIGITS) if len(averages) > 1 else None
