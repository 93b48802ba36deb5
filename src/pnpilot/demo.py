"""`pnpilot demo`: a real scan in two settings, where no constants suit both."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from .baselines import build_baseline
from .benchmark.examples import Example
from .benchmark.results import Results
from .benchmark.scores import scored
from .io.files import writable_folder, writable_json, write_json
from .io.scans import example_brain
from .metrics import psnr
from .model import PnPilot
from .plots import compare_crops, plot_traces
from .tasks.csmri import CSMRI

BASELINES = ("zero-filled", "tv")
POLICIES = ("fixed", "schedule", "learned")
SETTINGS = ("x2 sigma=15", "x8 sigma=5")
"""Strong noise, and few samples; `docs/results/demo.md` has the other settings, and says why these two."""
CROP = slice(66, 130), slice(12, 76)
"""The part that the picture enlarges: folds of the cortex and a ventricle."""


def run_demo(out: Path, device: torch.device, seed: int = 0) -> dict[str, Any]:
    """Print the table, write two pictures and the JSON to `out`, and return what is in the JSON."""
    writable_folder(out)
    writable_json(out / "demo.json")
    console = Console(markup=False)
    task, truth = CSMRI(), example_brain().to(device)
    results, examples = Results(None, seed), []
    traces: dict[str, dict[str, Any]] = {}
    with console.status("reconstructing") as status:
        models = {name: _model(name, device) for name in POLICIES}
        for label in SETTINGS:
            y, physics = task.simulate(truth, task.named(label), seed)
            images: dict[str, Tensor] = {}
            for name in (*BASELINES, *POLICIES):
                status.update(f"reconstructing {label}: {name}")
                start = time.perf_counter()
                if name in models:
                    images[name], trace = _followed(models[name], y, physics, truth)
                    traces.setdefault(label, {})[name] = trace
                    iterations = trace["iterations"]
                else:
                    baseline = build_baseline(name)
                    images[name], iterations = task.extract(baseline(y, physics)), baseline.iterations
                seconds = time.perf_counter() - start
                scores = scored(images[name].cpu(), truth.cpu(), torch.tensor([iterations]), seconds, device)
                results.add("brain", label, name, [{"image": "brain", **own} for own in scores])
            examples.append(_example(label, truth, images))

    results.show(Console())
    pictures = [out / "images.png", out / "parameters.png"]
    compare_crops(pictures[0], examples)
    drawn = {f"{name}, {label}": traces[label][name] for label in SETTINGS for name in POLICIES[1:]}
    plot_traces(pictures[1], drawn)
    content = {**results.content, "traces": traces}
    write_json(out / "demo.json", content)
    console.print(f"\npictures: {pictures[0]}, {pictures[1]}; numbers: {out / 'demo.json'}", soft_wrap=True)
    return content


def _model(policy: str, device: torch.device) -> PnPilot:
    if policy == "learned":
        return PnPilot.from_pretrained("csmri", device=device)
    return PnPilot(solver="admm", policy=policy, device=device)


def _followed(model: PnPilot, y: Tensor, physics: Any, truth: Tensor) -> tuple[Tensor, dict[str, Any]]:
    """The image, and its trace with the PSNR after every decision."""
    task, curve = CSMRI(), []
    for step in model.steps(y, physics):
        curve.append(round(psnr(task.extract(step.image), truth).item(), 3))
    return task.extract(step.image), {**step.trace[0], "psnr": curve}


def _example(label: str, truth: Tensor, images: dict[str, Tensor]) -> Example:
    captions = {name: f"{psnr(image, truth).item():.2f} dB" for name, image in images.items()}
    shown = {name: image[0].cpu() for name, image in images.items()}
    return Example(f"brain, {label}", truth[0].cpu(), shown, captions, CROP)
