"""Train a policy on simulated measurements: play an episode, learn from the latest ones, again and again.

Read from top to bottom: arguments, checks, data, networks, loop, weights. Choices that differ from the paper are listed
in docs/policies.md.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..benchmark.denoising import device_name
from ..denoisers import Denoiser, build_denoiser
from ..errors import Incompatible, require
from ..io.files import writable_folder
from ..policies._observe import OBSERVATIONS
from ..policies.base import POLICIES
from ..policies.learned import Learned, policy_name
from ..problem import Problem
from ..reconstruct import check_fit
from ..solvers import Solver, build_solver
from ..tasks import Task, build_task, simulated
from ..weights import save_weights
from .checkpoint import load_checkpoint, save_checkpoint
from .clock import Clock, cosine
from .episodes import Problems, Simulations
from .exam import Exam
from .learner import Learner, LearnerArgs
from .mixed import Mixed
from .model_free import DDPG
from .parallel import agreed, processes
from .patches import read_split
from .progress import ProgressLine
from .replay import Replay

LEARNERS: dict[str, type[Learner]] = {"learned": Mixed, "model-free": DDPG}
"""Learners by the method that their weights are called after."""
EXAM_SHARE = 0.05
"""Of the time, exams may take so much: on a GPU they are quick, on a CPU there may be none before the end."""


@dataclass
class PolicyArgs:
    """Everything that decides the result of a run."""

    task: str
    data: str
    solver: str = "auto"
    denoiser: str = "compact"
    method: str = "learned"
    observation: str = "watched"
    minutes: float = 10.0
    seed: int = 0
    batch: int = 24
    size: int = 128
    each: int = 5
    decisions: int = 6
    replay: int = 20
    updates: int = 6
    warmup: int = 20
    held_out: int = 16
    learner: LearnerArgs = field(default_factory=LearnerArgs)


def train_policy(
    args: PolicyArgs,
    out: Path,
    *,
    device: torch.device,
    weights: Path | None = None,
    save_every: float = 60.0,
) -> dict[str, Any]:
    """Train for `args.minutes` of wall clock, write weights and card to `out`, and return the card.

    A run that was stopped goes on where its last checkpoint in `out` left it. Under torchrun every process plays its
    own episodes.
    """
    task, denoiser = build_task(args.task), build_denoiser(args.denoiser, weights=weights)
    torch.manual_seed(args.seed)
    policy = _new_policy(args, task, denoiser)
    writable_folder(out, needed=500_000_000)
    training, validation = read_split(Path(args.data), args.held_out, args.seed)
    with processes(device) as (rank, count, device):
        denoiser.to(device)
        exam = Exam(task, validation, args.size, device)
        torch.manual_seed(args.seed + 1)  # whatever was drawn until here
        learner = LEARNERS[args.method](policy, denoiser, args.learner, device)
        return _run(args, out, learner, exam, training, rank, count, save_every)


def _samples(task: Task) -> list[Problem]:
    """A few small problems as they are drawn in training."""
    image = torch.rand(1, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    draws = [task.draw(1, torch.Generator().manual_seed(seed)) for seed in range(8)]
    return [simulated(task, image, settings, seed) for seed, settings in enumerate(draws)]


def _new_policy(args: PolicyArgs, task: Task, denoiser: Denoiser) -> Learned:
    """The untrained policy, after a look at whether its parts fit together."""
    for kind, name, known in (("method", args.method, LEARNERS), ("observation", args.observation, OBSERVATIONS)):
        require(name in known, f"unknown {kind} {name!r}; known: {', '.join(known)}")
    width = args.learner.width
    require(width % 8 == 0, f"the width of the encoder must be a multiple of 8, got {width}")
    if not denoiser.differentiable:
        raise Incompatible(
            f"a policy learns through its denoiser, and {denoiser.name!r} has no gradient: choose another one"
        )
    problems = _samples(task)
    solver = build_solver(args.solver, problems[0].offers)
    check_fit(problems[0], solver)
    observe = OBSERVATIONS[args.observation]
    counts = {observe(problem, solver, solver.init(problem), torch.zeros(1)).shape[1] for problem in problems}
    if len(counts) > 1:
        raise Incompatible(
            f"the observation {args.observation!r} has {min(counts)} to {max(counts)} channels for {args.task!r}, "
            "depending on what is drawn in training: choose another observation"
        )
    (channels,) = counts
    chosen = POLICIES[args.method]
    assert issubclass(chosen, Learned)
    return chosen(solver, **_shape(args, channels))


def _shape(args: PolicyArgs, channels: int) -> dict[str, Any]:
    return {
        "iterations": args.each * args.decisions,
        "each": args.each,
        "width": args.learner.width,
        "observation": args.observation,
        "channels": channels,
    }


def _run(
    args: PolicyArgs,
    out: Path,
    learner: Learner,
    exam: Exam,
    training: list[np.ndarray],
    rank: int,
    count: int,
    save_every: float,
) -> dict[str, Any]:
    device, policy = learner.device, learner.policy
    generator = torch.Generator(device).manual_seed(1000 * args.seed + rank)
    checkpoint, metrics = out / "checkpoint.safetensors", out / "metrics.jsonl"
    resumed = checkpoint.exists()
    episodes, spent, replay = 0, 0.0, Replay(args.replay)

    identity = {**asdict(args), "denoiser_sha256": learner.denoiser.sha256}

    def save() -> None:
        if rank == 0:
            progress = {"args": identity, "episodes": episodes, "spent": clock.spent}
            save_checkpoint(checkpoint, learner.parts(), progress)

    with ProgressLine(f"train {policy_name(args.method, args.task, policy.solver.name)}", quiet=rank > 0) as line:
        if resumed:
            progress = load_checkpoint(checkpoint, learner.parts(), identity)
            episodes, spent = progress["episodes"], progress["spent"]
            generator.manual_seed(1000 * args.seed + rank + 7919 * episodes)
            line.say(f"resumed at episode {episodes}, {spent:.0f} s of {60 * args.minutes:.0f} s spent")
        simulations = Simulations(
            exam.task, training, args.batch, args.size, args.seed, first=1_000_000 * rank + episodes
        )
        if not resumed:  # on the same batch in all processes
            problem, truth = simulations.number(0)
            seeded = torch.Generator(device).manual_seed(args.seed)
            learner.calibrate(learner.play(problem.to(device), truth.to(device), seeded))
        problems = Problems(simulations, device)
        torch.backends.cudnn.benchmark = True  # batches have one or two shapes
        clock = Clock(args.minutes, spent)
        saved = examined = reported = time.monotonic()
        took = 0.0  # by the latest exam
        watched: dict[str, Tensor] = {}
        try:
            while (share := agreed(clock.share, device)) < 1:
                problem, truth = next(problems)
                began = time.monotonic()
                episode = learner.play(problem, truth, generator)
                exam_takes = max(took, (time.monotonic() - began) * exam.runs / len(truth))
                replay.add(episode)
                rate = args.learner.rate * cosine(share, episodes, args.warmup)
                for _ in range(args.updates):
                    watched = learner.update(replay.sample(generator), rate)
                episodes += 1
                now = time.monotonic()
                if rank == 0 and now - reported > line.interval:
                    reported = now
                    record = {"episode": episodes, "seconds": round(clock.spent, 1), "rate": rate}
                    record |= {"gain": _gain(episode.scores, episode.alive), "decisions": _mean(episode.alive.sum(0))}
                    record |= {name: value.item() for name, value in watched.items()}
                    _append(metrics, record)
                    words = f"episode {episodes}  gain {record['gain']:.2f} dB  decisions {record['decisions']:.1f}"
                    line.update(share, f"{words}  critic {record['critic_loss']:.3f}")
                if rank == 0 and now - saved > save_every:
                    save()
                    saved = now
                if rank == 0 and now - examined > max(save_every, exam_takes / EXAM_SHARE):
                    scores = exam.take(policy, learner.denoiser)
                    _append(metrics, {"episode": episodes, "seconds": round(clock.spent, 1), "held_out": scores})
                    line.say(f"episode {episodes}: held out {_words(scores)}")
                    examined = time.monotonic()
                    took = examined - now
        except KeyboardInterrupt:
            save()
            line.say(f"stopped at episode {episodes}; the same command goes on from {checkpoint}")
            raise
        finally:
            torch.backends.cudnn.benchmark = False
        save()
        card = _card(args, learner, device, count, len(training), episodes, clock.spent)
        if rank == 0:
            card["held_out"] = exam.take(policy, learner.denoiser)
            _append(metrics, {"episode": episodes, "seconds": round(clock.spent, 1), "held_out": card["held_out"]})
            path = save_weights(policy.network, policy_name(args.method, args.task, policy.solver.name), out, card)
            line.say(f"{episodes} episodes: held out {_words(card['held_out'])}; weights in {path}")
    return card


def _card(
    args: PolicyArgs, learner: Learner, device: torch.device, count: int, images: int, episodes: int, seconds: float
) -> dict[str, Any]:
    solver: Solver = learner.policy.solver
    command = (
        f"pnpilot train policy --task {args.task} --solver {solver.name} --denoiser {args.denoiser} --data DIR "
        f"--minutes {args.minutes:g} --seed {args.seed}"
    )
    for name in ("method", "observation"):
        command += f" --{name} {getattr(args, name)}" if getattr(args, name) != getattr(PolicyArgs, name) else ""
    for name in ("rate", "width", "lookahead", "value_slope"):
        value = getattr(args.learner, name)
        command += f" --{name.replace('_', '-')} {value:g}" if value != getattr(LearnerArgs, name) else ""
    return {
        "method": args.method,
        "task": args.task,
        "solver": solver.name,
        "denoiser": args.denoiser,
        "denoiser_sha256": learner.denoiser.sha256,
        "shape": _shape(args, learner.channels),
        "command": command,
        "arguments": {**asdict(args), "data": Path(args.data).name},
        "device": device_name(device),
        "processes": count,
        "images": images,
        "minutes": round(seconds / 60, 2),
        "episodes": episodes,
        "torch": torch.__version__,
        "licence": "BSD-3-Clause",
        "parameters_millions": round(sum(p.numel() for p in learner.policy.network.parameters()) / 1e6, 3),
    }


def _gain(scores: Tensor, alive: Tensor) -> float:
    """PSNR gained from the start to where each image stopped, in the mean."""
    last = alive.sum(0)
    return _mean(scores.gather(0, last[None])[0] - scores[0])


def _mean(values: Tensor) -> float:
    return values.float().mean().item()


def _words(scores: dict[str, dict[str, float]]) -> str:
    return "  ".join(f"{label} {s['psnr']:.2f}@{s['iterations']:.1f}" for label, s in scores.items())


def _append(path: Path, record: dict[str, Any]) -> None:
    bad = {name for name, value in record.items() if isinstance(value, float) and not math.isfinite(value)}
    plain = {name: None if name in bad else value for name, value in record.items()}
    with path.open("a") as file:
        file.write(json.dumps(plain) + "\n")
