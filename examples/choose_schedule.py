"""How the constants of the default schedule were chosen: a grid, on photographs that are in no test set.

    python examples/choose_schedule.py --data FOLDER_OF_IMAGES

Prints the mean PSNR over images and settings for each pair of constants; the best pair is the default of
`pnpilot.policies.schedules.Schedule`.
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
from pnpilot.tasks.csmri import CSMRI

LAST = (1.0, 1.4, 2.0, 2.8)
WEIGHT = (0.5, 1.0, 2.0)


def main() -> None:
    """Run the grid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of images of 128×128 or more")
    parser.add_argument("--images", type=int, default=4, help="how many to use")
    arguments = parser.parse_args()

    paths = image_paths(arguments.data)
    chosen = paths[:: max(1, len(paths) // arguments.images)][: arguments.images]
    truth = torch.stack([read_image(path, (128, 128)) for path in chosen])
    task, solver, denoiser = CSMRI(), build_solver("admm"), build_denoiser("compact")
    settings = [task.setting(factor, sigma) for factor, sigma in ((2, 5), (4, 15), (8, 10))]
    problems = [open_problem(*task.simulate(truth, setting, seed=1), Hints(peak=1.0)) for setting in settings]

    print("last  weight  mean    " + "  ".join(f"{setting.label:>12}" for setting in settings))
    for last, weight in itertools.product(LAST, WEIGHT):
        scores = []
        for problem in problems:
            with torch.no_grad():
                *_, step = rollout(problem, solver, denoiser, Schedule(solver, last=last, weight=weight))
            scores.append(psnr(task.extract(step.image), truth).mean().item())
        mean = sum(scores) / len(scores)
        print(f"{last:4g}  {weight:6g}  {mean:6.3f}  " + "  ".join(f"{score:12.3f}" for score in scores), flush=True)


if __name__ == "__main__":
    main()
