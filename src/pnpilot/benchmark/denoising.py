"""Gaussian denoising scores: how good a denoiser is by itself."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from ..denoisers import Denoiser
from ..denoisers.base import bf16_on_gpu
from ..io.images import image_paths, read_image
from .scores import scored
from .timing import timed


def denoise_folder(
    denoiser: Denoiser, folder: Path, sigma: float, *, seed: int = 0, images: int | None = None
) -> Iterator[dict[str, Any]]:
    """Scores image by image at noise level sigma (0-255 scale); the noise depends on seed and position."""
    for index, path in enumerate(image_paths(folder)[:images]):
        truth = read_image(path)[None]
        generator = torch.Generator().manual_seed(1000 * seed + index)
        noisy = (truth + sigma / 255 * torch.randn(truth.shape, generator=generator)).to(denoiser.device)
        with torch.inference_mode():
            clean, seconds = timed(partial(denoiser, noisy, sigma / 255), denoiser.device)
        (scores,) = scored(clean.cpu(), truth, torch.ones(1), seconds, denoiser.device)
        yield {"image": path.stem, **scores}


def mean_psnr(denoiser: Denoiser, folder: Path, sigma: float) -> float:
    """Mean PSNR over a folder."""
    scores = [row["psnr"] for row in denoise_folder(denoiser, folder, sigma)]
    return sum(scores) / len(scores)


def complexity(denoiser: Denoiser, height: int = 128, width: int = 128) -> dict[str, float]:
    """Parameters (millions) and GFLOP (a multiply-add counts two) for one image of that size."""
    image = torch.zeros(1, 1, height, width, device=denoiser.device)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        denoiser(image, 0.1)
    return {
        "parameters_millions": sum(parameter.numel() for parameter in denoiser.parameters()) / 1e6,
        "gflop": counter.get_total_flops() / 1e9,
    }


def milliseconds(denoiser: Denoiser, height: int = 256, width: int = 256) -> float:
    """Median time for one image of that size, in the precision that it is used in."""
    device = denoiser.device
    image = torch.rand(1, 1, height, width, generator=torch.Generator().manual_seed(0)).to(device)
    warm_up, calls = (10, 50) if device.type == "cuda" else (1, 5)
    times = []
    with torch.inference_mode(), bf16_on_gpu(device, denoiser.bf16):
        for _ in range(warm_up + calls):
            times.append(timed(partial(denoiser, image, 0.1), device)[1])
    return 1e3 * statistics.median(times[warm_up:])
