"""How well the noise level is found that nobody told: ours beside deepinv's two estimators.

    pip install ptwt einops
    python examples/compare_noise_estimators.py --data FOLDER_OF_IMAGES

For every operator, the estimate over the truth: the median over the images, and the range. deepinv's estimators take an
image of white noise; k-space is shown to them as the zero-filled image, whose noise is that of the samples times the
root of the share that was measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from deepinv.models import PatchCovarianceNoiseEstimator, WaveletNoiseEstimator
from deepinv.physics import Denoising, GaussianNoise, Physics
from deepinv.utils.mixins import MRIMixin
from torch import Tensor

from pnpilot.benchmark.report import table
from pnpilot.io.images import image_paths, read_image
from pnpilot.problems import Hints, open_problem
from pnpilot.tasks import Setting, Task
from pnpilot.tasks.csmri import CSMRI
from pnpilot.tasks.deblur import Deblur
from pnpilot.tasks.inpainting import InpaintingTask
from pnpilot.tasks.multi_coil import MultiCoilTask
from pnpilot.tasks.phase import PhaseRetrieval
from pnpilot.tasks.super_resolution import SuperResolution
from pnpilot.tasks.tomography import TomographyTask
from pnpilot.types import to_two_channels

SETTINGS: dict[str, tuple[Task, Callable[[float], Setting]]] = {
    "CS-MRI ×2": (CSMRI(), partial(CSMRI.setting, 2)),
    "CS-MRI ×8": (CSMRI(), partial(CSMRI.setting, 8)),
    "eight coils, Cartesian ×4": (MultiCoilTask(), partial(MultiCoilTask.setting, 4)),
    "deblurring": (Deblur(), partial(Deblur.setting, 1.6)),
    "inpainting, 0.5 kept": (InpaintingTask(), partial(InpaintingTask.setting, 0.5)),
    "inpainting, 0.2 kept": (InpaintingTask(), partial(InpaintingTask.setting, 0.2)),
    "super-resolution ×2": (SuperResolution(), partial(SuperResolution.setting, 2)),
    "tomography, 60 views": (TomographyTask(), partial(TomographyTask.setting, 60)),
}
LEVELS = 2.55, 7.65, 15.0
THEIRS = {"wavelets": WaveletNoiseEstimator(), "patch covariance": PatchCovarianceNoiseEstimator()}


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of images of 128×128 or more")
    parser.add_argument("--images", type=int, default=12, help="how many to use")
    arguments = parser.parse_args()
    chosen = image_paths(arguments.data)[: arguments.images]
    truth = torch.stack([read_image(path, (128, 128)) for path in chosen])
    lines = []
    for name, (task, setting) in SETTINGS.items():
        for level in LEVELS:
            y, physics = task.simulate(truth, setting(level))
            lines.append([name, f"{level:g}", *ratios(y, physics)])
            if task.name == "csmri":
                lines.append([f"{name}, with a phase", f"{level:g}", *ratios(physics(with_a_phase(truth)), physics)])
    for level in LEVELS:
        physics = Denoising(GaussianNoise(level / 255, rng=torch.Generator().manual_seed(0)))
        lines.append(["denoising", f"{level:g}", *ratios(physics(truth), physics)])
    for alpha in (9, 27, 81):
        y, physics = PhaseRetrieval().simulate(truth, PhaseRetrieval.setting(alpha))
        lines.append(["coded diffraction", f"{alpha / 2:g}", ours(y, physics), *[""] * len(THEIRS)])
    print(table(["", "σ × 255", "ours", *THEIRS], lines))


def with_a_phase(image: Tensor) -> Tensor:
    """In deepinv's two channels, with a phase that turns smoothly across the image."""
    rows, columns = (torch.linspace(-1, 1, length) for length in image.shape[-2:])
    return to_two_channels(torch.polar(image, (rows[:, None].square() + 2 * columns).expand_as(image)))


def ratios(y: Tensor, physics: Physics) -> list[str]:
    """One cell per estimator."""
    return [ours(y, physics), *(theirs(estimator, y, physics) for estimator in THEIRS.values())]


def ours(y: Tensor, physics: Physics) -> str:
    """Of the level that is worked out where none is declared."""
    declared, found = (open_problem(y, physics, Hints(sigma_n=hint)).units for hint in (None, "estimate"))
    assert declared.sigma_n is not None
    if found.sigma_n is None:
        return "none"
    return cell(found.sigma_n * found.peak / (declared.sigma_n * declared.peak))


def theirs(estimator: Callable[[Tensor], Tensor], y: Tensor, physics: Physics) -> str:
    """Of deepinv's estimator, image by image: it gives up on all of a batch at once."""
    picture, level = y, physics.noise_model.sigma.flatten()
    if isinstance(physics, MRIMixin):
        picture, level = physics.A_adjoint(y), level * open_problem(y, physics).kept.sqrt()
    found = []
    for one, own in zip(picture, level.expand(len(picture)), strict=True):
        try:
            found.append(estimator(one[None]).flatten()[0] / own)
        except RuntimeError:
            found.append(own * torch.nan)
    return cell(torch.stack(found))


def cell(values: Tensor) -> str:
    """Median and range, and how often there was nothing."""
    known = values[~values.isnan()]
    failed = f", {len(values) - len(known)} failed" if len(known) < len(values) else ""
    if not len(known):
        return "failed"
    return f"{known.median():.2f} ({known.min():.2f}–{known.max():.2f}{failed})"


if __name__ == "__main__":
    main()
