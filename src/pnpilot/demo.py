"""`pnpilot demo`: a real scan, undersampled four times, reconstructed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from .baselines import build_baseline
from .benchmark.results import Results
from .io.files import writable_folder, write_json
from .io.scans import example_brain
from .metrics import psnr, ssim
from .model import PnPilot
from .plots import compare_images, plot_traces
from .tasks.csmri import CSMRI

BASELINES = ("zero-filled", "tv")
POLICIES = ("fixed", "schedule", "learned")


def run_demo(out: Path, device: torch.device, seed: int = 0) -> dict[str, Any]:
    """Print the table, write two pictures and the JSON to `out`, and return what is in the JSON."""
    writable_folder(out)
    console = Console()
    truth = example_brain().to(device)
    setting = CSMRI.setting(acceleration=4, sigma=15)
    y, physics = CSMRI().simulate(truth, setting, seed)
    results = Results(None, seed)
    images: dict[str, Tensor] = {}
    traces: dict[str, Any] = {}
    with console.status("reconstructing") as status:
        for name in BASELINES:
            status.update(f"reconstructing: {name}")
            baseline = build_baseline(name)
            start = time.perf_counter()
            images[name] = baseline(y, physics)
            _enter(results, setting.label, name, images[name], truth, baseline.iterations, time.perf_counter() - start)
        for name in POLICIES:
            status.update(f"reconstructing: {name}")
            model = _model(name, device)
            start = time.perf_counter()
            result = model.reconstruct(y, physics)
            seconds = time.perf_counter() - start
            curve = [round(psnr(step.image[:, :1], truth).item(), 3) for step in model.steps(y, physics)]
            images[name], traces[name] = result.image, {**result.trace[0], "psnr": curve}
            _enter(results, setting.label, name, result.image, truth, result.trace[0]["iterations"], seconds)

    results.show(console)
    shown = {name: image[0, 0].cpu() for name, image in images.items()}
    captions = {row["method"]: f"{row['psnr']:.2f} dB" for row in results.content["rows"]}
    compare_images(out / "images.png", truth[0, 0].cpu(), shown, captions)
    plot_traces(out / "parameters.png", traces)
    content = {**results.content, "traces": traces}
    write_json(out / "demo.json", content)
    pictures = f"{out / 'images.png'}, {out / 'parameters.png'}"
    console.print(f"\npictures: {pictures}; numbers: {out / 'demo.json'}", soft_wrap=True)
    return content


def _model(policy: str, device: torch.device) -> PnPilot:
    if policy == "learned":
        return PnPilot.from_pretrained("csmri", device=device)
    return PnPilot(solver="admm", policy=policy, device=device)


def _enter(
    results: Results, setting: str, method: str, image: Tensor, truth: Tensor, iterations: int, seconds: float
) -> None:
    estimate = image[:, :1]  # the real part: so the paper scores a real image
    scores = {"psnr": psnr(estimate, truth).item(), "ssim": ssim(estimate, truth).item()}
    results.add(
        "brain scan", setting, method, [{"image": "slice 12", **scores, "iterations": iterations, "seconds": seconds}]
    )
