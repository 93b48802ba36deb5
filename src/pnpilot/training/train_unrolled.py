"""Train an unrolled network on altered photographs, in all settings of the CS-MRI benchmark at once."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..baselines import BASELINES
from ..baselines._unrolled import Unrolled
from ..denoisers.base import bf16_on_gpu
from ..devices import device_name, gpu_share
from ..io.files import writable_folder
from ..weights import save_weights
from .arguments import UnrolledArgs
from .augment import augmented
from .mri_exam import MRIExam, Simulator
from .options import command_of
from .patches import PatchSource, read_split
from .session import SAVE_EVERY, Session, session
from .supervised import Supervised


def train_unrolled(
    args: UnrolledArgs, out: Path, *, device: torch.device, save_every: float = SAVE_EVERY
) -> dict[str, Any]:
    """Train for `args.minutes` of wall clock, write weights and card to `out`, and return the card.

    A run that was stopped resumes from its last checkpoint in `out`.
    """
    kind = BASELINES[args.name]
    assert issubclass(kind, Unrolled)
    command = command_of("pnpilot train baseline", args, ("data", "minutes", "seed"))
    batch = args.batch or kind.batch
    args = replace(args, batch=batch, learning_rate=args.learning_rate or kind.rate)
    writable_folder(out)
    training, validation = read_split(Path(args.data), args.held_out, args.seed)
    patches = PatchSource(training, args.size, device)
    generator = torch.Generator(device).manual_seed(args.seed)
    simulator = Simulator(args.size, device)
    exam = MRIExam(validation, simulator)

    torch.manual_seed(args.seed)
    network = kind.network_class().to(device)

    def loss() -> Tensor:
        truth = augmented(patches.sample(batch, generator), generator)
        problem = simulator.measure(truth, generator)
        with bf16_on_gpu(device, network.bf16):
            return network.loss(problem, truth)

    trainee = Supervised(network, args, generator, loss, lambda average: _in_words(exam.take(average)))
    with session(f"train {args.name}", out, trainee.parts, asdict(args), device=device, save_every=save_every) as run:
        run.run(trainee)
        card = {**_card(args, run, device), "command": command, "images": len(training)}
        card["parameters_millions"] = round(sum(p.numel() for p in network.parameters()) / 1e6, 3)
        card["held_out"] = exam.take(trainee.average)
        path = save_weights(trainee.average, args.name, out, card)
        run.line.say(
            f"{run.steps} steps: held out {_in_words(card['held_out'])}; weights in {path}; "
            f"those in use are in {kind.folder()}"
        )
    return card


def _in_words(scores: dict[str, float]) -> str:
    """Scores in a line."""
    return "  ".join(f"{label} {score:.2f}" for label, score in scores.items())


def _card(args: UnrolledArgs, run: Session, device: torch.device) -> dict[str, Any]:
    return {
        "name": args.name,
        "arguments": {**asdict(args), "data": Path(args.data).name},
        "device": device_name(device),
        **gpu_share(device),
        "minutes": round(run.spent / 60, 2),
        "steps": run.steps,
        "torch": torch.__version__,
        "licence": "BSD-3-Clause",
    }
