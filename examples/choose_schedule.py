"""How the constants of the default schedule were chosen: a grid, on photographs that are in no test set.

    python examples/choose_schedule.py --data FOLDER_OF_IMAGES
    python examples/choose_schedule.py --data BRAIN_SLICES --images 50 --task csmri --scan SCAN.cfl

Prints the mean PSNR over images for each setting of several operators and each pair of constants (last, weight), and
what a pair loses on average against the best of each setting. The second command shows what the same constants do to
real images: slices behind simulated sampling, and a real scan of several coils.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, product
from pathlib import Path

import torch
from torch import Tensor

from pnpilot.benchmark.scan import Scan, estimated_maps
from pnpilot.denoisers import build_denoiser
from pnpilot.io.images import image_paths, read_image
from pnpilot.io.kspace import read_coils
from pnpilot.metrics import psnr
from pnpilot.policies.schedules import Schedule
from pnpilot.problems import Hints, Problem, open_problem
from pnpilot.reconstruct import rollout
from pnpilot.solvers import build_solver
from pnpilot.tasks import TASKS, Setting, Task
from pnpilot.tasks.csmri import CSMRI
from pnpilot.tasks.multi_coil import MultiCoilTask

LAST = (0.8, 1.0, 1.2, 1.4)
WEIGHT = (0.7, 1.0)
SETTINGS: dict[str, Sequence[Setting]] = {
    "csmri": [CSMRI.setting(factor, sigma) for factor, sigma in ((2, 5), (4, 15), (8, 10))],
    "multi-coil": [MultiCoilTask.setting(4, sigma, "calibrated") for sigma in (2.55, 10)],
    **dict.fromkeys(("deblur", "inpainting", "super-resolution", "tomography", "phase"), ()),
}
"""Of each task; those of its benchmark where there are none."""
SCANNED = ("calibrated x4", "radial x4", "random x6")

Row = tuple[str, Problem, Callable[[Tensor], float]]
"""What a row is called, its problem, and the PSNR of what comes out."""


def main() -> None:
    """Run the grid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of images of 128×128 or more")
    parser.add_argument("--images", type=int, default=3, help="how many to use")
    parser.add_argument("--task", action="append", choices=sorted(SETTINGS), help="only this; repeat for several")
    parser.add_argument("--scan", type=Path, help="fully sampled multi-coil k-space, for rows of its own")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()

    paths = image_paths(arguments.data)
    chosen = paths[:: max(1, len(paths) // arguments.images)][: arguments.images]
    truth = torch.stack([read_image(path, (128, 128)) for path in chosen]).to(arguments.device)
    rows = chain(
        simulated(truth, arguments.task or list(SETTINGS)),
        scanned(arguments.scan, arguments.device) if arguments.scan else (),
    )
    solver, denoiser = build_solver("admm"), build_denoiser("compact").to(arguments.device)
    grid, losses = list(product(LAST, WEIGHT)), []
    print(" " * 40 + "".join(f"  {last:g}, {weight:g}".rjust(10) for last, weight in grid))
    for label, problem, score in rows:
        scores = []
        for last, weight in grid:
            with torch.no_grad():
                *_, step = rollout(problem, solver, denoiser, Schedule(solver, last=last, weight=weight))
            scores.append(score(step.image))
        losses.append(max(scores) - torch.tensor(scores))
        print(label.ljust(40) + "".join(f"{found:10.2f}" for found in scores), flush=True)
    print("mean loss against the best".ljust(40) + "".join(f"{loss:10.2f}" for loss in torch.stack(losses).mean(0)))


def simulated(truth: Tensor, names: Iterable[str]) -> Iterator[Row]:
    """Images behind the operators of these tasks."""
    for name in names:
        task = TASKS[name]()
        for setting in SETTINGS[name] or task.settings:
            problem = open_problem(*task.simulate(truth, setting, seed=1), Hints(peak=1.0))
            yield f"{name} {setting.label}", problem, partial(mean_psnr, task, truth)


def mean_psnr(task: Task, truth: Tensor, image: Tensor) -> float:
    """Of a batch in the layout of the physics."""
    return psnr(task.extract(image), truth).mean().item()


def scanned(file: Path, device: str) -> Iterator[Row]:
    """A real scan, undersampled afterwards."""
    kspace = read_coils(file)
    scan = Scan(kspace, estimated_maps(kspace))
    for label in SCANNED:
        y, physics, _ = scan.measure(label, seed=0)
        problem = open_problem(y.to(device), physics.to(device))
        yield f"scan {label}", problem, lambda image: scan.scored(image)["psnr"]


if __name__ == "__main__":
    main()
