"""The paper's policy table: what different ways to set the parameters of one solver reach."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..denoisers import Denoiser
from ..errors import UnknownName
from ..metrics import psnr, ssim
from ..policies import Policy, build_policy
from ..policies.oracle import Oracle, Surface
from ..problem import Hints, Problem
from ..reconstruct import rollout
from ..solvers import Solver
from ..tasks import Setting, Task, open_problem
from ..types import Denoise
from .data import load_dataset
from .results import Results

DATASETS = ("brain50", "medical4")
HANDMADE = ("fixed", "schedule", "dpir", "ircnn")
SEARCHED = ("fixed-optimal", "oracle")
START = "zero-filled"
METHODS = (START, *(name + star for name in (*HANDMADE, *SEARCHED) for star in ("", "*")))
SIZE = 128


@dataclass
class Bench:
    """What stays the same over the whole table."""

    task: Task
    solver: Solver
    denoiser: Denoiser
    seed: int = 0
    batch: int = 16
    """Images per batch when running, and points × images when searching."""


class Run(NamedTuple):
    """A policy's run on a batch: its last image, and its best one with the iteration that gave it."""

    last: Tensor
    best: Tensor
    best_iteration: Tensor
    seconds: float


def bench_policies(
    bench: Bench,
    data: Path,
    results: Results,
    *,
    datasets: Sequence[str] = DATASETS,
    methods: Sequence[str] = METHODS,
    settings: Sequence[str] | None = None,
    images: int | None = None,
    tick: Callable[[str], Any] = lambda _: None,
) -> None:
    """Fill the table, dataset by dataset, setting by setting; `tick` hears of each finished cell."""
    device = next(bench.denoiser.parameters()).device
    for dataset in datasets:
        names, truth = load_dataset(data, dataset, SIZE, images)
        for setting in choose_settings(bench.task, settings):
            for method, scores in _cells(bench, truth.to(device), setting, methods):
                results.add(
                    dataset, setting.label, method, [{"image": n, **s} for n, s in zip(names, scores, strict=True)]
                )
                tick(f"{dataset} {setting.label} {method}")


def choose_settings(task: Task, labels: Sequence[str] | None) -> list[Setting]:
    """The settings with these labels, or all of the task's."""
    known = {setting.label: setting for setting in task.settings}
    for label in labels or ():
        if label not in known:
            raise UnknownName(f"unknown setting {label!r}; known: {', '.join(map(repr, known))}")
    return [known[label] for label in labels] if labels else list(known.values())


@torch.no_grad()
def _cells(
    bench: Bench, truth: Tensor, setting: Setting, methods: Sequence[str]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    y, physics = bench.task.simulate(truth, setting, bench.seed)
    problem = open_problem(y, physics, Hints(peak=1.0))
    denoise = problem.prior(bench.denoiser)
    if START in methods:
        yield START, _scores(problem.x0(), truth, torch.zeros(len(truth)), 0.0)
    for name in HANDMADE:
        if name in methods or name + "*" in methods:
            run = run_policy(problem, bench.solver, denoise, build_policy(name, bench.solver), truth, bench.batch)
            yield from ((row, scores) for row, scores in _pair(name, run, truth) if row in methods)
    surface = Surface(problem, bench.solver, denoise, truth, batch=bench.batch)
    for name in SEARCHED:
        for star in ("", "*"):
            if name + star not in methods:
                continue
            policy = build_policy(name, bench.solver, best_stop=bool(star))
            assert isinstance(policy, Oracle)
            policy.search(surface)
            run = run_policy(problem, bench.solver, denoise, policy, truth, len(truth))
            yield name + star, dict(_pair(name, run, truth))[name + star]


def run_policy(problem: Problem, solver: Solver, denoise: Denoise, policy: Policy, truth: Tensor, batch: int) -> Run:
    """Run a policy in batches, keeping each image's best iterate as well as its last."""
    runs = []
    for index in torch.arange(len(problem), device=truth.device).split(batch):
        part, target = problem.select(index), truth[index]
        best = torch.zeros_like(target)
        score = torch.full((len(index),), -torch.inf, device=truth.device)
        when = torch.zeros(len(index), dtype=torch.long, device=truth.device)
        start = time.perf_counter()
        for step in rollout(part, solver, denoise, policy):
            image = step.image.real
            found = psnr(image, target)
            better = found > score
            best = torch.where(better[:, None, None, None], image, best)
            when, score = torch.where(better, step.iterations, when), torch.maximum(found, score)
        when = when.cpu()  # waits for the device
        runs.append(Run(image, best, when, time.perf_counter() - start))
    return Run(
        last=torch.cat([run.last for run in runs]),
        best=torch.cat([run.best for run in runs]),
        best_iteration=torch.cat([run.best_iteration for run in runs]),
        seconds=sum(run.seconds for run in runs) / len(problem),
    )


def _pair(name: str, run: Run, truth: Tensor) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    iterations = torch.full((len(truth),), 30.0)
    yield name, _scores(run.last, truth, iterations, run.seconds)
    share = run.best_iteration.float().mean().item() / 30
    yield name + "*", _scores(run.best, truth, run.best_iteration.float(), run.seconds * share)


def _scores(image: Tensor, truth: Tensor, iterations: Tensor, seconds: float) -> list[dict[str, Any]]:
    columns = zip(psnr(image, truth).tolist(), ssim(image, truth).tolist(), iterations.tolist(), strict=True)
    return [{"psnr": p, "ssim": s, "iterations": n, "seconds": seconds} for p, s, n in columns]
