"""Train a denoiser on random patches with Gaussian noise of random strength.

Read from top to bottom: arguments, data, network, loop, weights. Choices that differ from the paper are listed in
docs/denoisers.md.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..benchmark.denoising import complexity, mean_psnr
from ..denoisers import DENOISERS, Denoiser
from ..denoisers.base import bf16_on_gpu
from ..devices import device_name, gpu_share
from ..errors import BadInput
from ..io.files import writable_folder
from ..io.images import image_paths
from ..metrics import psnr
from ..weights import save_weights
from .arguments import DenoiserArgs
from .options import command_of
from .patches import PatchSource, corners, read_split
from .session import SAVE_EVERY, session
from .supervised import Supervised


def train_denoiser(
    args: DenoiserArgs, out: Path, *, device: torch.device, test: Path | None = None, save_every: float = SAVE_EVERY
) -> dict[str, Any]:
    """Train for `args.minutes` of wall clock, write weights and card to `out`, and return the card.

    A run that was stopped resumes from its last checkpoint in `out`.
    """
    torch.manual_seed(args.seed)
    denoiser = DENOISERS[args.name]().to(device)
    if not denoiser.needs_weights:
        raise BadInput(f"the denoiser {args.name!r} has no weights to train")
    writable_folder(out)
    test_sets = _test_sets(test)
    training, validation = read_split(Path(args.data), args.held_out, args.seed)
    patches = PatchSource(training, args.patch, device)
    generator = torch.Generator(device).manual_seed(args.seed)
    trainee = Supervised(
        denoiser,
        args,
        generator,
        lambda: _loss(denoiser, patches, generator, args),
        lambda average: f"{_held_out(average, validation, args, device):.2f} dB at σ=50",
    )
    with session(f"train {args.name}", out, trainee.parts, asdict(args), device=device, save_every=save_every) as run:
        run.run(trainee)
        card = _card(trainee.average, args, device, run.steps, run.spent)
        path = save_weights(trainee.average, args.name, out, card)
        run.line.say(f"{run.steps} steps; weights in {path}")
        for folder in test_sets:
            scores = {f"sigma={s}": round(mean_psnr(trainee.average, folder, s), 3) for s in (15, 25, 50)}
            card["psnr"][folder.name] = scores
            run.line.say(f"{folder.name}: {scores}")
        save_weights(trainee.average, args.name, out, card)
    return card


def _test_sets(test: Path | None) -> list[Path]:
    if test is None:
        return []
    folders = sorted(folder for folder in test.iterdir() if folder.is_dir()) if test.is_dir() else []
    if not folders:
        raise BadInput(f"{test} has no subfolders with test images")
    for folder in folders:
        image_paths(folder)
    return folders


def _loss(denoiser: Denoiser, patches: PatchSource, generator: torch.Generator, args: DenoiserArgs) -> Tensor:
    clean = patches.sample(args.batch, generator)
    sigma = torch.rand(args.batch, device=clean.device, generator=generator) * args.largest_sigma / 255
    noise = torch.randn(clean.shape, device=clean.device, generator=generator)
    noisy = clean + sigma[:, None, None, None] * noise
    with bf16_on_gpu(clean.device):
        estimate = denoiser(noisy, sigma)
    return F.l1_loss(estimate.float(), clean)


@torch.inference_mode()
def _held_out(denoiser: Denoiser, images: list[np.ndarray], args: DenoiserArgs, device: torch.device) -> float:
    clean = corners(images, args.patch).to(device)
    if not len(clean):
        return float("nan")
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(args.seed)).to(device)
    return psnr(denoiser(clean + 50 / 255 * noise, 50 / 255), clean).mean().item()


def _card(denoiser: Denoiser, args: DenoiserArgs, device: torch.device, step: int, seconds: float) -> dict[str, Any]:
    return {
        "name": args.name,
        "command": command_of("pnpilot train denoiser", args, ("data", "minutes", "seed")),
        "arguments": {**asdict(args), "data": Path(args.data).name},
        "data": sorted(path.name for path in Path(args.data).iterdir() if path.is_dir()),
        "device": device_name(device),
        **gpu_share(device),
        "minutes": round(seconds / 60, 2),
        "steps": step,
        "torch": torch.__version__,
        "licence": "BSD-3-Clause",
        **{key: round(value, 3) for key, value in complexity(denoiser).items()},
        "psnr": {},
    }
