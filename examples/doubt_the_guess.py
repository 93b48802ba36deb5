"""What data object to where an image was guessed to be real and non-negative, and the guess was right or wrong.

    python examples/doubt_the_guess.py --data FOLDER_OF_IMAGES

For every operator, the strongest objection after `schedule`, in units of what noise gives: the median over the images,
and the range. The guess is right for images as they are; it is wrong once the brightest spot of each has another phase,
or the opposite sign. Images whose data show that from the start are counted, and left out.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from pnpilot.benchmark.report import table
from pnpilot.denoisers import build_denoiser
from pnpilot.guess import objection
from pnpilot.io.images import image_paths, read_image
from pnpilot.policies.schedules import Schedule
from pnpilot.prior import bounded
from pnpilot.problems import open_problem
from pnpilot.reconstruct import rollout
from pnpilot.solvers import build_solver
from pnpilot.tasks import TASKS, Setting, Task
from pnpilot.types import to_two_channels

TASK_NAMES = "csmri", "inpainting", "super-resolution", "tomography", "deblur"
SPOTS = {
    "right": (0, 0.0),
    "10 pixels, 45°": (5, math.pi / 4),
    "10 pixels, 180°": (5, math.pi),
    "4 pixels, 45°": (2, math.pi / 4),
    "4 pixels, 180°": (2, math.pi),
}
"""Radius and phase."""


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of images of 128×128 or more")
    parser.add_argument("--images", type=int, default=12, help="how many to use")
    arguments = parser.parse_args()
    paths = image_paths(arguments.data)
    chosen = paths[:: max(1, len(paths) // arguments.images)][: arguments.images]
    truth = torch.stack([read_image(path, (128, 128)) for path in chosen])
    lines = []
    for task in (TASKS[name]() for name in TASK_NAMES):
        for setting in task.settings:
            spots = SPOTS.items() if task.name == "csmri" else [item for item in SPOTS.items() if "45°" not in item[0]]
            cells = {name: objections(task, setting, truth, *spot) for name, spot in spots}
            lines.append([f"{task.name} {setting.label}", *(cells.get(name, "") for name in SPOTS)])
    print(table(["", *SPOTS], lines))


@torch.no_grad()
def objections(task: Task, setting: Setting, truth: Tensor, radius: int, angle: float) -> str:
    """The strongest objection for images whose brightest spot is turned by an angle."""
    _, physics = task.simulate(truth, setting, seed=0)
    image = torch.where(brightest(truth, radius), truth * torch.exp(torch.tensor(1j * angle)), truth)
    problem = open_problem(physics(to_two_channels(image) if task.name == "csmri" else image.real), physics)
    solver = build_solver("admm")
    *_, last = rollout(problem, solver, build_denoiser("compact"), Schedule(solver))
    found = bounded(solver.output(last.state), problem.units)
    values = objection(problem, found)[problem.units.real]
    shown = f"; {len(truth) - len(values)} shown" if len(values) < len(truth) else ""
    return f"{values.median():.1f} ({values.min():.1f}–{values.max():.1f}{shown})" if len(values) else "all shown"


def brightest(truth: Tensor, radius: int) -> Tensor:
    """Flags (B, 1, H, W) for the disk of this radius with the largest mean."""
    place = torch.arange(-radius, radius + 1)
    disk = (place[:, None].square() + place.square() <= radius**2).float()[None, None]
    if not radius:
        return torch.zeros_like(truth, dtype=torch.bool)
    mean = F.conv2d(truth, disk, padding=radius)
    top = mean >= mean.amax((-2, -1), keepdim=True)
    return F.conv2d(top.float(), disk, padding=radius) > 0


if __name__ == "__main__":
    main()
