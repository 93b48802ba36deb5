"""How the constants of the default schedule were chosen, on photographs that are in no test set.

    python examples/choose_schedule.py --data DATA --photographs FOLDER_OF_IMAGES --constants
    python examples/choose_schedule.py --data DATA --photographs BRAIN_SLICES --operator csmri-x4,csmri-x8,multi-coil
    python examples/choose_schedule.py --data DATA --scan SCAN.npy --maps MAPS.npy

Prints what other constants gain, in dB of PSNR over the schedule as it is, for every operator of `bench operators` with
its noise, with 0.4 times and with 2.5 times as much; with --constants also what the best constant parameters for the
set gain. The second command does the same on slices of brains; the third on a real scan of several coils.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from pnpilot.benchmark.operators import OPERATORS, build_operator
from pnpilot.benchmark.operators._levin import Levin
from pnpilot.benchmark.oracles import FixedOptimal, Surface
from pnpilot.benchmark.scan import Scan
from pnpilot.denoisers import Denoiser, build_denoiser
from pnpilot.io.images import image_paths, read_image
from pnpilot.io.kspace import read_coils
from pnpilot.metrics import psnr
from pnpilot.policies.schedules import Schedule
from pnpilot.problems import Hints, Problem, open_problem
from pnpilot.reconstruct import rollout
from pnpilot.solvers import build_solver
from pnpilot.tasks import Task

TRIED: dict[str, dict[str, float]] = {
    "first 49": {"first": 49 / 255},
    "first 28": {"first": 28 / 255},
    "last 0.8": {"last": 0.8},
    "last 1.25": {"last": 1.25},
    "weight 0.7": {"weight": 0.7},
    "weight 1.4": {"weight": 1.4},
    "floor 2.55": {"floor": 2.55 / 255},
    "floor 0.5": {"floor": 0.5 / 255},
    "no blurs": {"forgets": 0.0, "lighter": 0.0},
    "blurs less": {"forgets": 0.2, "lighter": 0.3},
    "blurs more": {"forgets": 0.4, "lighter": 0.5},
}
"""What differs from the schedule as it is."""
NOISE = (0.4, 1.0, 2.5)
SCANNED = ("calibrated x4", "cartesian x4", "radial x4", "random x6")
AT_A_TIME = 640
"""Images of 128×128 in a batch."""

Row = tuple[str, Problem, Callable[[Tensor], float], Tensor | None]
"""What a row is called, its problem, the mean PSNR of what comes out, and the true images."""


def main() -> None:
    """Run all rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the kernels")
    parser.add_argument("--photographs", type=Path, help="a folder of images, or of folders 'grey' and 'colour'")
    parser.add_argument("--images", type=int, default=6, help="how many to use")
    parser.add_argument("--operator", default="", help="only these, separated by commas")
    parser.add_argument("--constants", action="store_true", help="also search the best constants, which takes a GPU")
    parser.add_argument("--scan", type=Path, help="fully sampled multi-coil k-space, for rows of its own")
    parser.add_argument("--maps", type=Path, help="its coil maps")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()

    names = [name for name in arguments.operator.split(",") if name] or list(OPERATORS)
    denoiser, gains = build_denoiser("compact").to(arguments.device), []
    print(" " * 34 + "as it is" + "".join(name.rjust(12) for name in TRIED) + "   constants" * arguments.constants)
    for label, problem, score, truth in rows(arguments, names):
        found = [score(image) for image in ended(problem, denoiser, [{}, *TRIED.values()])]
        gain = [score - found[0] for score in found[1:]]
        if arguments.constants and truth is not None:
            gain.append(constants(problem, denoiser, truth) - found[0])
        gains.append(torch.tensor(gain))
        print(f"{label:34}{found[0]:8.2f}" + "".join(f"{one:+12.2f}" for one in gain), flush=True)
    for what, of in (("mean", lambda gain: gain.mean(0)), ("smallest", lambda gain: gain.amin(0))):
        print(f"{what:42}" + "".join(f"{one:+12.2f}" for one in of(torch.stack(gains))))


def rows(arguments: argparse.Namespace, names: Sequence[str]) -> Iterator[Row]:
    """Photographs behind each operator, or a scan behind masks."""
    if arguments.photographs is not None:
        for name in names:
            for factor in NOISE:
                yield from simulated(name, factor, arguments)
    if arguments.scan is not None:
        scan = Scan(read_coils(arguments.scan), read_coils(arguments.maps))
        for label in SCANNED:
            y, physics, _ = scan.measure(label, seed=0)
            problem = open_problem(y.to(arguments.device), physics.to(arguments.device))
            yield f"scan {label}", problem, lambda image: scan.scored(image)["psnr"], None


def simulated(name: str, factor: float, arguments: argparse.Namespace) -> Iterator[Row]:
    """One operator with more noise or less; nothing, if it has none to change."""
    operator = build_operator(name)
    level = next((key for key in ("sigma", "alpha") if operator.values.get(key)), None)
    if isinstance(operator, Levin):
        operator.level *= factor
    elif level is not None:
        operator.values = {**operator.values, level: operator.values[level] * factor}
    elif factor != 1:
        return
    own = arguments.photographs / ("colour" if operator.channels == 3 else "grey")
    paths = image_paths(own if own.is_dir() else arguments.photographs)
    chosen = paths[:: max(1, len(paths) // arguments.images)][: arguments.images]
    truth = torch.stack([read_image(path, operator.size, operator.channels) for path in chosen]).to(arguments.device)
    y, physics, task = operator.simulate(truth, arguments.data)
    problem = open_problem(y, physics, Hints(peak=1.0, real=True))
    yield f"{name} ×{factor:g}", problem, partial(mean_psnr, task, truth), truth


def mean_psnr(task: Task, truth: Tensor, image: Tensor) -> float:
    """Of a batch in the layout of the physics."""
    return psnr(task.extract(image), truth).mean().item()


@torch.no_grad()
def ended(problem: Problem, denoiser: Denoiser, tried: Sequence[Mapping[str, float]]) -> Iterator[Tensor]:
    """What the schedule ends with for each of these constants, as many at a time as fit."""
    count = len(problem)
    room = max(1, AT_A_TIME * 128**2 // (count * problem.x0()[0].numel()))
    for start in range(0, len(tried), room):
        part = tried[start : start + room]
        index = torch.arange(count, device=problem.y.device).repeat(len(part))
        policy = Schedule(build_solver("admm"))
        for name in {name for options in part for name in options}:
            own = [options.get(name, getattr(policy, name)) for options in part]
            setattr(policy, name, torch.tensor(own, device=problem.y.device).repeat_interleave(count))
        *_, step = rollout(problem.select(index), policy.solver, denoiser, policy)
        yield from step.image.split(count)


def constants(problem: Problem, denoiser: Denoiser, truth: Tensor) -> float:
    """The mean PSNR of the best constants for the set."""
    solver = build_solver("admm")
    policy = FixedOptimal(solver)
    room = max(len(truth), int(AT_A_TIME * 128**2 / truth[0].numel()))
    surface = Surface(problem, solver, denoiser, truth, batch=room)
    policy.search(surface)
    point = torch.stack([policy.values[name] for name in list(solver.params)[:2]], -1).log().cpu()
    return surface.curves(point[None])[0, :, -1].mean().item()


if __name__ == "__main__":
    main()
