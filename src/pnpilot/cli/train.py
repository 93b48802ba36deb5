"""`pnpilot train`. The options of a run are in `training/arguments.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..training.arguments import DenoiserArgs, PolicyArgs, SearchArgs, UnrolledArgs
from ._options import with_options
from ._shared import Device, Weights, chosen_device, stoppable

train = typer.Typer(no_args_is_help=True, help="Train the networks.")

Out = Annotated[Path | None, typer.Option(help="Folder for all output; default runs/NAME.")]
Smoke = Annotated[bool, typer.Option("--smoke", help="A tiny run of a few seconds, to check that everything works.")]


@train.command("denoiser")
@with_options(DenoiserArgs)
def train_denoiser(
    args: DenoiserArgs,
    out: Out = None,
    test: Annotated[Path | None, typer.Option(help="Folder whose subfolders are test sets, scored at the end.")] = None,
    device: Device = "auto",
    smoke: Smoke = False,
) -> None:
    """Train a denoiser; run the same command again to resume after a stop."""
    from ..training.train_denoiser import train_denoiser as run

    args = args.smoke() if smoke else args
    with stoppable():
        run(args, out or Path("runs") / args.name, device=chosen_device(device), test=test)


@train.command("baseline")
@with_options(UnrolledArgs, SearchArgs)
def train_baseline(
    network: UnrolledArgs,
    search: SearchArgs,
    out: Out = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes of a search on a CPU; default one per core.", min=1)
    ] = None,
    device: Device = "auto",
    smoke: Smoke = False,
) -> None:
    """Train the network of another method, or search its constants, for all settings of its task.

    Run the same command again to resume after a stop.
    """
    from ..training.train_baseline import train_baseline as run

    if smoke:
        network, search = network.smoke(), search.smoke()
    with stoppable():
        run(network, search, out or Path("runs") / network.name, device=chosen_device(device), workers=workers)


@train.command("policy")
@with_options(PolicyArgs)
def train_policy(
    args: PolicyArgs,
    weights: Weights = None,
    out: Annotated[Path | None, typer.Option(help="Folder for all output; default runs/METHOD-TASK-SOLVER.")] = None,
    device: Device = "auto",
    smoke: Smoke = False,
) -> None:
    """Train a policy, also under torchrun on several GPUs; run the same command again to resume after a stop."""
    from ..training.train_policy import train_policy as run

    args = args.smoke() if smoke else args
    folder = out or Path("runs") / f"{args.method}-{args.task}-{args.solver}"
    with stoppable():
        run(args, folder, device=chosen_device(device), weights=weights)
