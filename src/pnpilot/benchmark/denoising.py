"""Gaussian denoising scores: how good a denoiser is by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from ..denoisers import DENOISERS, Denoiser
from ..io.images import image_paths, read_image
from ..metrics import psnr, ssim
from ..weights import has_weights
from .data import dataset_folder
from .results import Results

DATASETS = ("set12", "bsd68")
LEVELS = (15, 25, 50)


def ready() -> list[str]:
    """The denoisers that a name is enough to build: their weights ship, or they need none."""
    kinds = {name: DENOISERS[name] for name in DENOISERS}
    return [name for name, kind in kinds.items() if has_weights(name) or not (kind.needs_weights or kind.adapts)]


def bench_denoisers(
    denoisers: Mapping[str, Denoiser],
    data: Path,
    results: Results,
    *,
    datasets: Sequence[str] = DATASETS,
    images: int | None = None,
    tick: Callable[[str], Any] = lambda _: None,
) -> None:
    """Denoise every test set at every level; `tick` hears of each finished cell."""
    for name, denoiser in denoisers.items():
        extra = {key: round(value, 3) for key, value in complexity(denoiser).items()}
        for dataset in datasets:
            folder = dataset_folder(data, dataset)
            for level in LEVELS:
                scores = list(denoise_folder(denoiser, folder, level, seed=results.content["seed"], images=images))
                results.add(dataset, f"sigma={level}", name, scores, **extra)
                tick(f"{name} {dataset} sigma={level}")


def denoise_folder(
    denoiser: Denoiser, folder: Path, sigma: float, *, seed: int = 0, images: int | None = None
) -> Iterator[dict[str, Any]]:
    """Scores of one image after the other at noise level sigma (0-255 scale); noise depends on seed and position."""
    for index, path in enumerate(image_paths(folder)[:images]):
        truth = read_image(path)[None]
        generator = torch.Generator().manual_seed(1000 * seed + index)
        noisy = (truth + sigma / 255 * torch.randn(truth.shape, generator=generator)).to(denoiser.device)
        start = time.perf_counter()
        with torch.inference_mode():
            clean = denoiser(noisy, sigma / 255).cpu()
        seconds = time.perf_counter() - start
        scores = {"psnr": psnr(clean, truth).item(), "ssim": ssim(clean, truth).item()}
        yield {"image": path.stem, **scores, "iterations": 1, "seconds": seconds}


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
