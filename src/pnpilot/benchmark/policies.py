"""The paper's policy table: what different ways to set the parameters of one solver reach."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..baselines import BASELINES, Answer, build_baseline
from ..denoisers import Denoiser
from ..errors import Incompatible, UnknownName
from ..metrics import psnr
from ..policies import POLICIES, Policy, build_policy
from ..policies.learned import Learned, policy_name
from ..problems import Hints, Problem, open_problem
from ..reconstruct import check_fit, rollout
from ..simulation import simulated
from ..solvers import Solver, build_solver
from ..tasks import Setting, Task
from ..weights import has_weights
from .data import SIZE, load_dataset
from .oracles import ORACLES, Oracle, Surface
from .results import Results
from .scores import scored
from .tables import table_of


def row_names(task: Task, learned: Iterable[str] = ()) -> list[str]:
    """The start, then policies made by hand, those that see the truth, and learned ones; a star is a perfect stop."""
    made = [*(name for name in POLICIES if not issubclass(POLICIES[name], Learned)), *ORACLES]
    return [task.start, *(name + star for name in made for star in ("", "*")), *learned]


def check_methods(task: Task, methods: Sequence[str], learned: Iterable[str] = ()) -> None:
    """Refuse names that are neither methods of this table nor baselines."""
    known = list(dict.fromkeys([*row_names(task, learned), *BASELINES]))
    for name in methods:
        if name in POLICIES and name not in known:
            raise UnknownName(
                f"no policy {name!r} ships for this task, solver and denoiser: train one with "
                f"`pnpilot train policy --method {name}` and add --policy FOLDER"
            )
        if name not in known:
            raise UnknownName(f"unknown method {name!r}; known: {', '.join(known)}")


def learned_policies(bench: Bench, folders: Sequence[Path]) -> dict[str, Learned]:
    """Trained policies for the table, by method: the one that ships, if there is one, and those in folders."""
    task, denoiser = bench.task.name, bench.denoiser
    offers = simulated(bench.task, torch.full((1, bench.channels, 32, 32), 0.5), bench.task.settings[0]).offers
    solver = build_solver(bench.solver, offers).name
    found = {}
    for folder in folders:
        policy = Learned.read(folder)
        made_for, wanted = (policy.task, policy.solver.name, policy.denoiser), (task, solver, denoiser.name)
        if made_for != wanted:
            raise Incompatible(
                "the policy in {} was trained for task {!r}, solver {!r} and denoiser {!r}, ".format(folder, *made_for)
                + "not for {!r}, {!r} and {!r}".format(*wanted)
            )
        if mismatch := policy.mismatch(denoiser):
            raise Incompatible(f"{folder}: {mismatch}")
        found[next(name for name in (policy.name, folder.name, str(folder)) if name not in found)] = policy
    if Learned.name not in found and has_weights(shipped := policy_name(Learned.name, task, solver)):
        policy = Learned.load(shipped)
        if not policy.mismatch(denoiser):
            found[Learned.name] = policy
    for policy in found.values():
        policy.network.to(denoiser.device)
    return found


@dataclass
class Bench:
    """What stays the same over the whole table."""

    task: Task
    solver: str
    denoiser: Denoiser
    seed: int = 0
    seeds: int = 1
    """How many seeds, from the first on, to average over."""
    batch: int = 16
    """Images per batch when running, and points × images when searching."""
    size: tuple[int, int] = SIZE
    channels: int = 1
    """Images are read as grey ones, or as colour with 3."""
    learned: Mapping[str, Learned] = field(default_factory=dict)
    estimate_noise: bool = False
    """Whether the noise level is estimated from the data."""


class Run(NamedTuple):
    """A policy's run on a batch: its last image, and its best one, each with the iteration that gave it."""

    last: Tensor
    iterations: Tensor
    best: Tensor
    best_iteration: Tensor
    seconds: float
    """Per image."""

    def last_scores(self, truth: Tensor) -> list[dict[str, Any]]:
        """Scores of the images where the policy stopped."""
        return scored(self.last, truth, self.iterations.float(), self.seconds, truth.device)

    def best_scores(self, truth: Tensor) -> list[dict[str, Any]]:
        """Scores of the images at their best, as by a perfect stop; seconds are the share of the run up to there."""
        share = self.best_iteration.float().mean().item() / self.iterations.float().mean().item()
        return scored(self.best, truth, self.best_iteration.float(), self.seconds * share, truth.device)


def bench_policies(
    bench: Bench,
    data: Path,
    results: Results,
    *,
    datasets: Sequence[str],
    methods: Sequence[str],
    settings: Sequence[Setting],
    images: int | None = None,
    tick: Callable[[str], Any] = lambda _: None,
) -> None:
    """Fill the table, dataset by dataset, setting by setting; `tick` is called for each finished cell."""
    table, comparable = table_of(bench.task), bench.size == SIZE and images is None
    for dataset in datasets:
        names, truth = load_dataset(data, dataset, bench.size, images, bench.channels)
        truth = truth.to(bench.denoiser.device)
        for setting in settings:
            scores: dict[str, list[dict[str, Any]]] = {}
            for seed in range(bench.seed, bench.seed + bench.seeds):
                for method, found in measured(bench, truth, setting, methods, seed):
                    own = zip(names, found, strict=True)
                    scores.setdefault(method, []).extend({"image": name, "seed": seed, **s} for name, s in own)
                    if seed + 1 == bench.seed + bench.seeds:
                        paper = table.paper(dataset, setting.label, method) if comparable else None
                        results.add(dataset, setting.label, method, scores[method], paper)
                    tick(f"{dataset} {setting.label} {method}")


@torch.no_grad()
def measured(
    bench: Bench, truth: Tensor, setting: Setting, methods: Sequence[str], seed: int
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Scores of the images, method after method."""
    y, physics = bench.task.simulate(truth, setting, seed)
    problem = open_problem(y, physics, Hints(peak=1.0, real=True, sigma_n="estimate" if bench.estimate_noise else None))
    solver, denoiser = build_solver(bench.solver, problem.offers), bench.denoiser
    check_fit(problem, solver)
    surface = Surface(problem, solver, denoiser, truth, batch=bench.batch)
    runs: dict[str, Run] = {}
    for method in methods:
        name, starred = method.removesuffix("*"), method.endswith("*")
        if name == bench.task.start:
            yield name, _one_shot(lambda: Answer(problem.x0(), torch.zeros(len(truth))), truth)
            continue
        if name in BASELINES:
            yield name, _one_shot(partial(_by_baseline, name, bench.task, y, physics), truth)
            continue
        if name in ORACLES:
            oracle = ORACLES[name](solver, best_stop=starred)
            oracle.search(surface)
            run = run_policy(problem, solver, denoiser, oracle, truth, len(truth))
        else:
            policy = bench.learned.get(name) or build_policy(name, solver)
            run = runs[name] = runs.get(name) or run_policy(problem, solver, denoiser, policy, truth, bench.batch)
        scores = run.best_scores(truth) if starred else run.last_scores(truth)
        if name in ORACLES:
            scores = [{**score, **found} for score, found in zip(scores, _found(oracle, len(truth)), strict=True)]
        yield method, scores


def run_policy(problem: Problem, solver: Solver, denoiser: Denoiser, policy: Policy, truth: Tensor, batch: int) -> Run:
    """Run a policy in batches, keeping each image's best iterate as well as its last."""
    runs = []
    for index in torch.arange(len(problem), device=truth.device).split(batch):
        part, target = problem.select(index), truth[index]
        best = torch.zeros_like(target)
        score = torch.full((len(index),), -torch.inf, device=truth.device)
        when = torch.zeros(len(index), dtype=torch.long, device=truth.device)
        start = time.perf_counter()
        for step in rollout(part, solver, denoiser, policy):
            image = solver.output(step.state).real
            found = psnr(image, target)
            better = found > score
            best = torch.where(better[:, None, None, None], image, best)
            when, score = torch.where(better, step.iterations, when), torch.maximum(found, score)
        when = when.cpu()  # waits for the device
        runs.append(Run(image, step.iterations.cpu(), best, when, time.perf_counter() - start))
    return Run(
        last=torch.cat([run.last for run in runs]),
        iterations=torch.cat([run.iterations for run in runs]),
        best=torch.cat([run.best for run in runs]),
        best_iteration=torch.cat([run.best_iteration for run in runs]),
        seconds=sum(run.seconds for run in runs) / len(problem),
    )


def _by_baseline(name: str, task: Task, y: Tensor, physics: Any) -> Answer:
    image, iterations = build_baseline(name).answer(y, physics)
    return Answer(task.extract(image), iterations)


def _one_shot(call: Callable[[], Answer], truth: Tensor) -> list[dict[str, Any]]:
    start = time.perf_counter()
    answer = call()
    image = answer.image.cpu()  # waits for the device
    seconds = (time.perf_counter() - start) / len(truth)
    return scored(image, truth.cpu(), answer.iterations.float(), seconds, truth.device)


def _found(policy: Oracle, images: int) -> list[dict[str, float]]:
    columns = {name: values.expand(images).tolist() for name, values in policy.values.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
