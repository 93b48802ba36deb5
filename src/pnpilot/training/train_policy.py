"""Train a policy on simulated measurements: play an episode, learn from the latest ones, again and again.

Choices that differ from the paper are listed in docs/policies.md.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from ..denoisers import build_denoiser
from ..devices import device_name, gpu_share
from ..io.files import writable_folder
from ..policies.learned import policy_name
from ..tasks import build_task
from ..weights import save_weights
from .arguments import PolicyArgs
from .exam import Exam, in_words
from .learners import LEARNERS, Learner
from .new_policy import new_policy, shape_of
from .options import command_of
from .parallel import processes
from .patches import read_split
from .policy_trainee import PolicyTrainee
from .session import SAVE_EVERY, Session, session

ALWAYS_TOLD = ("task", "solver", "denoiser", "data", "minutes", "seed")
"""Options that the command on a card always has, even at their defaults."""


def train_policy(
    args: PolicyArgs,
    out: Path,
    *,
    device: torch.device,
    weights: Path | None = None,
    save_every: float = SAVE_EVERY,
) -> dict[str, Any]:
    """Train for `args.minutes` of wall clock, write weights and card to `out`, and return the card.

    A run that was stopped resumes from its last checkpoint in `out`. Under torchrun every process plays its own
    episodes.
    """
    kind = LEARNERS[args.method]
    task, denoiser = build_task(args.task), build_denoiser(args.denoiser, weights=weights)
    torch.manual_seed(args.seed)
    policy = new_policy(args, task, denoiser)
    name = policy_name(args.method, args.task, policy.solver.name)
    writable_folder(out, needed=500_000_000)
    training, validation = read_split(Path(args.data), args.held_out, args.seed)
    with processes(device) as (rank, count, device):
        denoiser.to(device)
        exam = Exam(task, validation, args.size, device)
        torch.manual_seed(args.seed + 1)  # independent of what was drawn until here
        learner = kind(policy, denoiser, args.learner, device)
        identity = {**asdict(args), "denoiser_sha256": denoiser.sha256}
        with session(
            f"train {name}",
            out,
            learner.parts(),
            identity,
            device=device,
            unit="episode",
            save_every=save_every,
            leads=rank == 0,
        ) as run:
            trainee = PolicyTrainee(args, learner, exam, training, run, out / "metrics.jsonl", rank)
            run.run(trainee)
            card = _card(args, learner, run)
            card |= {"processes": count, "images": len(training)}
            if weights is not None:
                card["command"] += " --weights DIR"
            if rank == 0:
                card["held_out"] = trainee.scores()
                path = save_weights(policy.network, name, out, card)
                run.line.say(f"{run.steps} episodes: held out {in_words(card['held_out'])}; weights in {path}")
    return card


def _card(args: PolicyArgs, learner: Learner, run: Session) -> dict[str, Any]:
    policy = learner.policy
    solver = policy.solver.name
    return {
        "method": args.method,
        "task": args.task,
        "physics": list(policy.physics),
        "real_only": policy.real_only,
        "solver": solver,
        "denoiser": args.denoiser,
        "denoiser_sha256": learner.denoiser.sha256,
        "shape": shape_of(args, learner.channels),
        "command": command_of("pnpilot train policy", replace(args, solver=solver), ALWAYS_TOLD),
        "arguments": {**asdict(args), "data": Path(args.data).name},
        "device": device_name(learner.device),
        **gpu_share(learner.device),
        "minutes": round(run.spent / 60, 2),
        "episodes": run.steps,
        "torch": torch.__version__,
        "licence": "BSD-3-Clause",
        "parameters_millions": round(sum(p.numel() for p in policy.network.parameters()) / 1e6, 3),
    }
