"""Train a denoiser on random patches with Gaussian noise of random strength.

Read from top to bottom: arguments, data, network, loop, weights. Choices that differ from the paper are listed in
docs/denoisers.md.
"""

from __future__ import annotations

import copy
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..benchmark.denoising import complexity, mean_psnr
from ..denoisers import DENOISERS, Denoiser
from ..denoisers.base import freeze, half_precision
from ..errors import BadInput
from ..io.files import writable_folder
from ..io.images import image_paths
from ..metrics import psnr
from ..weights import save_weights
from .checkpoint import load_checkpoint, save_checkpoint
from .clock import Clock, cosine
from .patches import PatchSource, read_split
from .progress import ProgressLine


@dataclass
class DenoiserArgs:
    """Everything that decides the result of a run."""

    name: str
    data: str
    minutes: float = 20.0
    seed: int = 0
    batch: int = 128
    patch: int = 128
    learning_rate: float = 5e-4
    weight_decay: float = 1e-4
    warmup: int = 500
    largest_sigma: float = 70.0
    ema: float = 0.999
    clip: float = 0.2
    held_out: int = 8


def train_denoiser(
    args: DenoiserArgs, out: Path, *, device: torch.device, test: Path | None = None, save_every: float = 60.0
) -> dict[str, Any]:
    """Train for `args.minutes` of wall clock, write weights and card to `out`, and return the card.

    A run that was stopped goes on where its last checkpoint in `out` left it.
    """
    writable_folder(out)
    test_sets = _test_sets(test)
    training, validation = read_split(Path(args.data), args.held_out, args.seed)
    patches = PatchSource(training, args.patch, device)
    generator = torch.Generator(device).manual_seed(args.seed)

    torch.manual_seed(args.seed)
    denoiser = DENOISERS[args.name]().to(device)
    if not denoiser.needs_weights:
        raise BadInput(f"the denoiser {args.name!r} has no weights to train")
    average = freeze(copy.deepcopy(denoiser))
    optimizer = torch.optim.AdamW(
        denoiser.parameters(), args.learning_rate, weight_decay=args.weight_decay, fused=device.type == "cuda"
    )

    parts = {"denoiser": denoiser, "average": average, "optimizer": optimizer, "generator": generator}
    checkpoint = out / "checkpoint.safetensors"
    step, clock = 0, Clock(args.minutes)

    def save() -> None:
        save_checkpoint(checkpoint, parts, {"args": asdict(args), "step": step, "spent": clock.spent})

    with ProgressLine(f"train {args.name}") as line:
        if checkpoint.exists():
            progress = load_checkpoint(checkpoint, parts, asdict(args))
            step, clock = progress["step"], Clock(args.minutes, progress["spent"])
            line.say(f"resumed at step {step}, {clock.spent:.0f} s of {clock.budget:.0f} s spent")
        torch.backends.cudnn.benchmark = True  # all batches have one shape
        saved = reported = time.monotonic()
        reported_step = step
        try:
            while clock.share < 1:
                for group in optimizer.param_groups:
                    group["lr"] = args.learning_rate * cosine(clock.share, step, args.warmup)
                loss = _update(denoiser, optimizer, patches, generator, args)
                _follow(average, denoiser, min(args.ema, (1 + step) / (10 + step)))
                step += 1
                if step % 20 == 0 and (now := time.monotonic()) - reported > line.interval:
                    speed = (step - reported_step) * args.batch / (now - reported)
                    line.update(clock.share, f"step {step}  loss {loss.item():.5f}  {speed:.0f} patches/s")
                    reported, reported_step = now, step
                if time.monotonic() - saved > save_every:
                    save()
                    saved = time.monotonic()
                    score = _held_out(average, validation, args, device)
                    line.say(f"step {step}: held-out PSNR at σ=50 {score:.2f} dB")
        except KeyboardInterrupt:
            save()
            line.say(f"stopped at step {step}; the same command goes on from {checkpoint}")
            raise
        save()
        torch.backends.cudnn.benchmark = False
        card = _card(average, args, device, step, clock.spent)
        path = save_weights(average, args.name, out, card)
        line.say(f"{step} steps; weights in {path}")
        for folder in test_sets:
            card["psnr"][folder.name] = {f"sigma={s}": round(mean_psnr(average, folder, s), 3) for s in (15, 25, 50)}
            line.say(f"{folder.name}: {card['psnr'][folder.name]}")
        save_weights(average, args.name, out, card)
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


@torch.no_grad()
def _follow(average: Denoiser, denoiser: Denoiser, rate: float) -> None:
    torch._foreach_lerp_(list(average.parameters()), list(denoiser.parameters()), 1 - rate)


def _update(
    denoiser: Denoiser,
    optimizer: torch.optim.Optimizer,
    patches: PatchSource,
    generator: torch.Generator,
    args: DenoiserArgs,
) -> Tensor:
    clean = patches.sample(args.batch, generator)
    sigma = torch.rand(args.batch, device=clean.device, generator=generator) * args.largest_sigma / 255
    noise = torch.randn(clean.shape, device=clean.device, generator=generator)
    noisy = clean + sigma[:, None, None, None] * noise
    with half_precision(clean.device):
        estimate = denoiser(noisy, sigma)
    loss = F.l1_loss(estimate.float(), clean)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(denoiser.parameters(), args.clip)
    optimizer.step()
    return loss.detach()


@torch.inference_mode()
def _held_out(denoiser: Denoiser, images: list[np.ndarray], args: DenoiserArgs, device: torch.device) -> float:
    side = args.patch
    crops = [image[:side, :side] for image in images if min(image.shape) >= side]
    if not crops:
        return float("nan")
    clean = torch.from_numpy(np.stack(crops))[:, None].float().to(device) / 255
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(args.seed)).to(device)
    return psnr(denoiser(clean + 50 / 255 * noise, 50 / 255), clean).mean().item()


def _card(denoiser: Denoiser, args: DenoiserArgs, device: torch.device, step: int, seconds: float) -> dict[str, Any]:
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    return {
        "name": args.name,
        "command": f"pnpilot train denoiser {args.name} --data DIR --minutes {args.minutes:g} --seed {args.seed}",
        "arguments": {**asdict(args), "data": Path(args.data).name},
        "data": sorted({path.name for path in Path(args.data).iterdir()}),
        "device": where,
        "minutes": round(seconds / 60, 2),
        "steps": step,
        "torch": torch.__version__,
        "licence": "BSD-3-Clause",
        **{key: round(value, 3) for key, value in complexity(denoiser).items()},
        "psnr": {},
    }
