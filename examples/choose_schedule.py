"""How the constants of the default schedule were chosen: a grid, on photographs that are in no test set.

    python examples/choose_schedule.py --data FOLDER_OF_IMAGES

Prints the mean PSNR over images for each setting of several operators and each pair of constants (last, weight), and
what a pair loses on average against the best of each setting.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import torch

from pnpilot.denoisers import build_denoiser
from pnpilot.io.images import image_paths, read_image
from pnpilot.metrics import psnr
from pnpilot.policies.schedules import Schedule
from pnpilot.problems import Hints, open_problem
from pnpilot.reconstruct import rollout
from pnpilot.solvers import build_solver
from pnpilot.tasks import TASKS
from pnpilot.tasks.csmri import CSMRI
from pnpilot.tasks.multi_coil import MultiCoilTask

LAST = (0.8, 1.0, 1.2, 1.4)
WEIGHT = (0.7, 1.0)


def main() -> None:
    """Run the grid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of images of 128×128 or more")
    parser.add_argument("--images", type=int, default=3, help="how many to use")
    arguments = parser.parse_args()

    paths = image_paths(arguments.data)
    chosen = paths[:: max(1, len(paths) // arguments.images)][: arguments.images]
    truth = torch.stack([read_image(path, (128, 128)) for path in chosen])
    solver, denoiser = build_solver("admm"), build_denoiser("compact")
    settings = [
        *((CSMRI(), CSMRI.setting(factor, sigma)) for factor, sigma in ((2, 5), (4, 15), (8, 10))),
        *((MultiCoilTask(), MultiCoilTask.setting(4, sigma, "calibrated")) for sigma in (2.55, 10)),
        *((TASKS[name](), setting) for name in CHOSEN for setting in TASKS[name]().settings),
    ]
    grid = list(itertools.product(LAST, WEIGHT))
    losses = torch.zeros(len(grid))
    print(" " * 40 + "".join(f"  {last:g}, {weight:g}".rjust(10) for last, weight in grid))
    for task, setting in settings:
        problem = open_problem(*task.simulate(truth, setting, seed=1), Hints(peak=1.0))
        scores = []
        for last, weight in grid:
            with torch.no_grad():
                *_, step = rollout(problem, solver, denoiser, Schedule(solver, last=last, weight=weight))
            scores.append(psnr(task.extract(step.image), truth).mean().item())
        losses += max(scores) - torch.tensor(scores)
        print(f"{task.name} {setting.label}".ljust(40) + "".join(f"{score:10.2f}" for score in scores), flush=True)
    print("mean loss against the best".ljust(40) + "".join(f"{loss:10.2f}" for loss in losses / len(settings)))


CHOSEN = ("deblur", "inpainting", "super-resolution", "tomography", "phase")

if __name__ == "__main__":
    main()
