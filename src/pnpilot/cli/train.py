"""`pnpilot train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ._shared import Device, Weights, chosen_device, stoppable

train = typer.Typer(no_args_is_help=True, help="Train the networks.")


@train.command("denoiser")
def train_denoiser(
    name: Annotated[str, typer.Argument(help="A trainable denoiser: compact, unet, dncnn or memnet.")],
    data: Annotated[Path, typer.Option(help="Folder of training images, searched with its subfolders.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for checkpoint, weights and card; default runs/NAME.")
    ] = None,
    minutes: Annotated[float, typer.Option(help="Wall-clock budget; the learning rate follows it.", min=0.001)] = 20.0,
    test: Annotated[Path | None, typer.Option(help="Folder whose subfolders are test sets, scored at the end.")] = None,
    batch: Annotated[int, typer.Option(help="Patches of 128×128 per step.", min=1)] = 128,
    seed: Annotated[int, typer.Option(help="Seed of weights, patches and noise.", min=0, max=2**31)] = 0,
    device: Device = "auto",
    smoke: Annotated[
        bool, typer.Option("--smoke", help="A few seconds with small batches, to see that all works.")
    ] = False,
) -> None:
    """Train a denoiser; run the same command again to go on after a stop."""
    from ..training.train_denoiser import DenoiserArgs
    from ..training.train_denoiser import train_denoiser as run

    args = DenoiserArgs(name=name, data=str(data), minutes=minutes, seed=seed, batch=batch)
    if smoke:
        args.minutes, args.batch, args.patch, args.warmup = min(minutes, 0.2), 4, 64, 5
    with stoppable("stopped; the same command goes on from the last checkpoint"):
        run(args, out or Path("runs") / name, device=chosen_device(device), test=test)


@train.command("baseline")
def train_baseline(
    name: Annotated[str, typer.Argument(help="A method with weights or constants; see `pnpilot list baselines`.")],
    data: Annotated[Path, typer.Option(help="Folder of photographs, searched with its subfolders.")],
    out: Annotated[Path | None, typer.Option(help="Folder for all it writes; default runs/NAME.")] = None,
    minutes: Annotated[float, typer.Option(help="Wall-clock budget of a network.", min=0.001)] = 20.0,
    images: Annotated[int, typer.Option(help="Images that constants are searched on.", min=1)] = 16,
    seed: Annotated[int, typer.Option(help="Seed of weights, images, masks and noise.", min=0, max=2**31)] = 0,
    workers: Annotated[
        int | None, typer.Option(help="Processes of a search on a CPU; default one per core.", min=1)
    ] = None,
    device: Device = "auto",
    smoke: Annotated[bool, typer.Option("--smoke", help="Little of everything, to see that all works.")] = False,
) -> None:
    """Train a network of other people's, or search the constants of a method, for all settings of its task.

    Run the same command again to go on after a stop.
    """
    from ..training.train_baseline import train_baseline as run

    with stoppable("stopped; the same command goes on from what is finished"):
        run(
            name,
            data,
            out or Path("runs") / name,
            minutes=minutes,
            images=images,
            seed=seed,
            workers=workers,
            device=chosen_device(device),
            smoke=smoke,
        )


@train.command("policy")
def train_policy(
    task: Annotated[str, typer.Option(help="A registered task.")],
    data: Annotated[Path, typer.Option(help="Folder of training images, searched with its subfolders.")],
    solver: Annotated[str, typer.Option(help="Whose parameters it sets; auto is ADMM if it fits.")] = "auto",
    denoiser: Annotated[str, typer.Option(help="A registered denoiser that has a gradient.")] = "compact",
    weights: Weights = None,
    out: Annotated[Path | None, typer.Option(help="Folder for all it writes; default runs/METHOD-TASK-SOLVER.")] = None,
    minutes: Annotated[float, typer.Option(help="Wall-clock budget; the learning rate follows it.", min=0.001)] = 10.0,
    method: Annotated[str, typer.Option(help="learned, or model-free for comparison.")] = "learned",
    observation: Annotated[str, typer.Option(help="watched, probed, universal, or paper.")] = "watched",
    width: Annotated[int, typer.Option(help="Width of the encoder; the paper's is 64.", min=8)] = 32,
    lookahead: Annotated[
        int, typer.Option(help="How often going on is played before the critic takes over.", min=1)
    ] = 2,
    rate: Annotated[float, typer.Option(help="Learning rate of policy and critic.", min=1e-6, max=1.0)] = 2e-3,
    value_slope: Annotated[float, typer.Option(help="Share of the critic's gradient.", min=0, max=1)] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of weights, images, masks and noise.", min=0, max=2**31)] = 0,
    device: Device = "auto",
    smoke: Annotated[
        bool, typer.Option("--smoke", help="A few seconds with small batches, to see that all works.")
    ] = False,
) -> None:
    """Train a policy; run the same command again to go on after a stop, or under torchrun on several GPUs."""
    from ..training.learner import LearnerArgs
    from ..training.train_policy import PolicyArgs
    from ..training.train_policy import train_policy as run

    args = PolicyArgs(
        task=task,
        data=str(data),
        solver=solver,
        denoiser=denoiser,
        method=method,
        observation=observation,
        minutes=minutes,
        seed=seed,
        learner=LearnerArgs(rate=rate, width=width, lookahead=lookahead, value_slope=value_slope),
    )
    if smoke:
        args.minutes, args.batch, args.size, args.held_out, args.updates = min(minutes, 0.5), 4, 64, 2, 2
    with stoppable("stopped; the same command goes on from the last checkpoint"):
        run(args, out or Path("runs") / f"{method}-{task}-{solver}", device=chosen_device(device), weights=weights)
