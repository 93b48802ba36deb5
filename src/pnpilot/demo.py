"""`pnpilot demo`: a real scan, undersampled four times, reconstructed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from deepinv.physics import Physics
from rich.console import Console
from torch import Tensor

from .baselines import build_baseline
from .benchmark.results import Results
from .io.files import writable_folder, write_json
from .io.scans import example_brain
from .metrics import psnr, ssim
from .model import PnPilot
from .plots import compare_images, plot_parameters
from .solvers import build_solver
from .tasks.csmri import CSMRI
from .trace import Trace

BASELINES = ("zero-filled", "tv")
POLICIES = ("fixed", "schedule")


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
            start = time.perf_counter()
            images[name], traces[name] = _reconstruct(name, y, physics, truth)
            iterations = traces[name]["iterations"]
            _enter(results, setting.label, name, images[name], truth, iterations, time.perf_counter() - start)

    results.show(console)
    shown = {name: image[0, 0].cpu() for name, image in images.items()}
    captions = {row["method"]: f"{row['psnr']:.2f} dB" for row in results.content["rows"]}
    compare_images(out / "images.png", truth[0, 0].cpu(), shown, captions)
    parameters = {name: trace["parameters"] for name, trace in traces.items()}
    curves = {name: trace["psnr"] for name, trace in traces.items()}
    plot_parameters(out / "parameters.png", build_solver("admm").params, parameters, curves)
    content = {**results.content, "traces": traces}
    write_json(out / "demo.json", content)
    pictures = f"{out / 'images.png'}, {out / 'parameters.png'}"
    console.print(f"\npictures: {pictures}; numbers: {out / 'demo.json'}", soft_wrap=True)
    return content


def _reconstruct(policy: str, y: Tensor, physics: Physics, truth: Tensor) -> tuple[Tensor, dict[str, Any]]:
    model = PnPilot(solver="admm", policy=policy, device=y.device)
    trace, curve = Trace(build_solver("admm")), []
    for step in model.steps(y, physics):
        trace.add(step)
        curve.append(round(psnr(step.image[:, :1], truth).item(), 3))
    return step.image, {**trace.records()[0], "psnr": curve}


def _enter(
    results: Results, setting: str, method: str, image: Tensor, truth: Tensor, iterations: int, seconds: float
) -> None:
    estimate = image[:, :1]  # the real part: so the paper scores a real image
    scores = {"psnr": psnr(estimate, truth).item(), "ssim": ssim(estimate, truth).item()}
    results.add(
        "brain scan", setting, method, [{"image": "slice 12", **scores, "iterations": iterations, "seconds": seconds}]
    )
