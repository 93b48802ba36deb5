"""Images per second: in batches as users run them, against one image after the other in single precision."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..devices import device_name
from ..metrics import psnr
from ..model import PnPilot
from ..physics import selected
from ..tasks import Task
from .denoising import complexity
from .timing import wait

ROUNDS = 3
"""Both ways take turns this many times; the median counts."""


def bench_speed(
    model: PnPilot, task: Task, truth: Tensor, batch: int, tick: Callable[[str], Any] = lambda _: None
) -> dict[str, Any]:
    """Rates and PSNR of both ways on the images (N, C, H, W), each setting of the task in turn."""
    settings = [task.settings[index % len(task.settings)] for index in range(len(truth))]
    y, physics = task.simulate(truth, settings)

    def run(size: int, half: bool, count: int) -> tuple[Tensor, int, float]:
        model.denoiser.bf16 = half
        images, iterations = [], 0
        wait(truth.device)
        start = time.perf_counter()
        for index in torch.arange(count, device=truth.device).split(size):
            result = model.reconstruct(y[index], selected(physics, index, len(y)))
            images.append(task.extract(result.image).real)
            iterations += sum(record["iterations"] for record in result.trace)
        wait(truth.device)
        return torch.cat(images), iterations, time.perf_counter() - start

    single = min(len(truth), batch)
    run(batch, True, len(truth))  # the first run of any shape is slower
    run(1, False, 1)
    many, one = [], []
    for number in range(ROUNDS):
        many.append(run(batch, True, len(truth)))
        one.append(run(1, False, single))
        tick(f"round {number + 1}")
    model.denoiser.bf16 = True
    images, iterations, seconds = sorted(many, key=lambda taken: taken[2])[ROUNDS // 2]
    alone, _, alone_seconds = sorted(one, key=lambda taken: taken[2])[ROUNDS // 2]
    difference = psnr(images[:single], truth[:single]) - psnr(alone, truth[:single])
    gflop = complexity(model.denoiser, *truth.shape[-2:])["gflop"] * iterations
    rate, alone_rate = len(truth) / seconds, single / alone_seconds
    peak = matrix_rate(truth.device)
    return {
        "device": device_name(truth.device),
        "batch": batch,
        "images": len(truth),
        "size": list(truth.shape[-2:]),
        "iterations": round(iterations / len(truth), 2),
        "images_per_second": round(rate, 2),
        "one_by_one_images_per_second": round(alone_rate, 2),
        "ratio": round(rate / alone_rate, 2),
        "teraflop_per_second": round(gflop / seconds / 1e3, 3),
        "matrix_product_teraflop_per_second": round(peak / 1e12, 3),
        "share_of_peak": round(gflop * 1e9 / seconds / peak, 4),
        "psnr_difference_mean": round(difference.mean().item(), 5),
        "psnr_difference_largest": round(difference.abs().max().item(), 5),
    }


def matrix_rate(device: torch.device) -> float:
    """Operations per second of a large matrix product, in bf16 on a GPU: the most that the device can do."""
    size, kind = (8192, torch.bfloat16) if device.type == "cuda" else (2048, torch.float32)
    a = torch.randn(size, size, device=device, dtype=kind)
    rates = []
    for _ in range(5):
        wait(device)
        start = time.perf_counter()
        a @ a
        wait(device)
        rates.append(2 * size**3 / (time.perf_counter() - start))
    return max(rates)
