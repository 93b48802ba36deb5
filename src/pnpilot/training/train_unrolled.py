"""Train an unrolled network on photographs, made various, in all settings of the CS-MRI benchmark at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..baselines import BASELINES
from ..baselines._unrolled import Unrolled, UnrolledNetwork
from ..benchmark.denoising import device_name
from ..denoisers.base import half_precision
from ..io.files import writable_folder
from ..metrics import psnr
from ..problem import Units
from ..tasks.csmri import CSMRI, MaskedFourier
from ..weights import save_weights
from .augment import augmented
from .exam import plain_and_varied
from .patches import PatchSource, read_split
from .progress import ProgressLine
from .supervised import Supervised, gpu_share


@dataclass
class UnrolledArgs:
    """Everything that decides the result of a run."""

    name: str
    data: str
    minutes: float = 10.0
    seed: int = 0
    batch: int = 32
    size: int = 128
    learning_rate: float = 5e-4
    weight_decay: float = 0.0
    warmup: int = 200
    ema: float = 0.999
    clip: float = 1.0
    held_out: int = 16


def train_unrolled(args: UnrolledArgs, out: Path, *, device: torch.device, save_every: float = 60.0) -> dict[str, Any]:
    """Train for `args.minutes` of wall clock, write weights and card to `out`, and return the card.

    A run that was stopped goes on where its last checkpoint in `out` left it.
    """
    kind = BASELINES[args.name]
    assert issubclass(kind, Unrolled)
    writable_folder(out)
    training, validation = read_split(Path(args.data), args.held_out, args.seed)
    patches = PatchSource(training, args.size, device)
    generator = torch.Generator(device).manual_seed(args.seed)
    simulator = Simulator(args.size, device)
    exam = Exam(validation, simulator)

    torch.manual_seed(args.seed)
    network = kind.network_class().to(device)
    run = Supervised(network, args, out, generator)

    def loss() -> Tensor:
        truth = augmented(patches.sample(args.batch, generator), generator)
        problem = simulator.measure(truth, generator)
        with half_precision(device, network.bf16):
            return network.loss(problem, truth)

    with ProgressLine(f"train {args.name}") as line:
        run.run(line, loss, lambda network: words(exam.take(network)), save_every)
        card = _card(args, run, device, len(training))
        card["held_out"] = exam.take(run.average)
        path = save_weights(run.average, args.name, out, card)
        line.say(f"{run.step} steps: held out {words(card['held_out'])}; weights in {path}")
    return card


class Simulator:
    """Measurements of the benchmark's settings, simulated on the device."""

    def __init__(self, size: int, device: torch.device) -> None:
        self.settings = CSMRI().settings
        unused = torch.Generator()
        masks = [CSMRI().physics(setting, size, size, unused).mask[0, :1] for setting in self.settings]
        self.masks = torch.fft.ifftshift(torch.stack(masks), dim=(-2, -1)).to(device)
        self.levels = torch.tensor([setting["sigma"] / 255 for setting in self.settings], device=device)

    def measure(self, truth: Tensor, generator: torch.Generator, settings: Tensor | None = None) -> MaskedFourier:
        """Data of images (B, 1, H, W) in settings (B,), drawn at random unless given."""
        if settings is None:
            settings = torch.randint(len(self.settings), (len(truth),), generator=generator, device=truth.device)
        mask, sigma = self.masks[settings], self.levels[settings]
        parts = torch.randn(2, *truth.shape, generator=generator, device=truth.device)
        noise = torch.complex(*parts) * sigma[:, None, None, None]
        y = mask * (torch.fft.fft2(truth, norm="ortho") + noise)
        units = Units(torch.ones_like(sigma), True, sigma, torch.ones(len(truth), dtype=torch.bool))
        return MaskedFourier(y, units, mask)


class Exam:
    """Held-out images, plain and varied, in every setting."""

    def __init__(self, images: Sequence[np.ndarray], simulator: Simulator) -> None:
        size, device = simulator.masks.shape[-1], simulator.masks.device
        self.truth = plain_and_varied(images, size).to(device)
        generator = torch.Generator(device).manual_seed(1)
        self.problems = {
            setting.label: simulator.measure(
                self.truth, generator, torch.full((len(self.truth),), index, device=device)
            )
            for index, setting in enumerate(simulator.settings)
        }

    @torch.inference_mode()
    def take(self, network: UnrolledNetwork) -> dict[str, float]:
        """Mean PSNR per setting."""
        return {
            label: round(psnr(network(problem), self.truth).mean().item(), 3)
            for label, problem in self.problems.items()
        }


def words(scores: dict[str, float]) -> str:
    """Scores in a line."""
    return "  ".join(f"{label} {score:.2f}" for label, score in scores.items())


def _card(args: UnrolledArgs, run: Supervised[Any], device: torch.device, images: int) -> dict[str, Any]:
    return {
        "name": args.name,
        "command": f"pnpilot train baseline {args.name} --data DIR --minutes {args.minutes:g} --seed {args.seed}",
        "arguments": {**asdict(args), "data": Path(args.data).name},
        "device": device_name(device),
        **gpu_share(device),
        "images": images,
        "minutes": round(run.clock.spent / 60, 2),
        "steps": run.step,
        "torch": torch.__version__,
        "licence": "BSD-3-Clause",
        "parameters_millions": round(sum(p.numel() for p in run.network.parameters()) / 1e6, 3),
    }
