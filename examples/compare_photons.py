"""What it is worth to know that noise is that of photons; and images from single photons.

    python examples/compare_photons.py --data DATA

Set12 at 128×128, one draw of noise; PSNR in dB, means over the images. `gaussian` is told the mean variance, as if all
samples had it; `photons` lets each sample count by the variance expected of it; `gain estimated` does so without being
told the gain. The start of single photons is the likeliest image of smoothed shares. `stabilised` is the classic where
nothing mixes pixels: a transform that makes the noise even (Anscombe 1948), one call of the same denoiser, and back.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from deepinv.physics import Denoising, LinearPhysics, PoissonNoise, Tomography
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.benchmark.data import SIZE, load_dataset
from pnpilot.benchmark.report import table
from pnpilot.denoisers import build_denoiser
from pnpilot.metrics import psnr
from pnpilot.physics import copied
from pnpilot.problems import Hints, open_problem
from pnpilot.tasks.poisson_deblurring import PoissonDeblurring
from pnpilot.tasks.single_photon import SinglePhotonTask
from pnpilot.tasks.tomography import TomographyTask

PEAKS = {"denoising": (10, 30, 100), "deblurring": (10, 30, 100), "tomography": (100, 1000, 10000)}
"""Photons where data are brightest: in a pixel, or along a ray."""
SEED = 0


def main() -> None:
    """Print two tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder with a folder set12")
    parser.add_argument("--images", type=int, default=12, help="how many to use")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--without", nargs="*", default=[], help="operators to leave out, such as tomography")
    arguments = parser.parse_args()
    _, truth = load_dataset(arguments.data, "set12", SIZE, arguments.images)
    device = torch.device(arguments.device)
    jots = [[f"{K}×{K} jots", *of_jots(K, truth, device)] for K in (4, 6, 8)]
    print(table(["single photons", "stabilised", "start", "schedule"], jots), flush=True)
    lines = []
    for name, physics in operators((1, *SIZE)).items():
        for peak in PEAKS[name] if name not in arguments.without else ():
            gain = float(physics.A(truth).max()) / peak
            physics.noise_model = PoissonNoise(gain, clip_positive=True, rng=torch.Generator().manual_seed(SEED))
            y, moved = physics(truth).to(device), copied(physics).to(device)
            lines.append([f"{name}, {peak:g} photons", *by_photons(y, moved, gain, truth.to(device))])
    print(table(["", "stabilised", "start", "gaussian", "photons", "gain estimated"], lines))


def operators(shape: tuple[int, int, int]) -> dict[str, LinearPhysics]:
    """Without noise yet."""
    generator = torch.Generator()
    return {
        "denoising": Denoising(),
        "deblurring": PoissonDeblurring().physics(PoissonDeblurring.setting(), shape, generator),
        "tomography": TomographyTask().physics(TomographyTask.setting(60), shape, generator),
    }


def by_photons(y: Tensor, physics: LinearPhysics, gain: float, truth: Tensor) -> list[str]:
    """Scores of the start, and with noise taken for this and that."""
    level = (gain * y.flatten(1).mean(1)).sqrt()
    found = [
        open_problem(y, physics, Hints(peak=1.0, real=True)).x0().clamp(0, 1),
        *(PnPilot(peak=1.0, real=True, device=y.device, **told)(y, physics) for told in ({"sigma_n": level}, {})),
    ]
    classic = scored(stabilised(y, gain), truth) if isinstance(physics, Denoising) else "–"
    estimated = "–"  # a sinogram is no picture, whose noise would show the gain
    if not isinstance(physics, Tomography):
        model = PnPilot(peak=1.0, real=True, device=y.device, gain="estimate")
        estimated = scored(model(y, physics), truth)
    return [classic, *(scored(image, truth) for image in found), estimated]


def of_jots(K: int, truth: Tensor, device: torch.device) -> list[str]:
    """Scores of the start and of the image from single photons."""
    y, physics = SinglePhotonTask().simulate(truth, SinglePhotonTask.setting(K), SEED)
    y, physics = y.to(device), physics.to(device)
    start = open_problem(y, physics, Hints(peak=1.0)).x0().clamp(0, 1)
    images = stabilised_share(y, K * K), start, PnPilot(peak=1.0, device=device)(y, physics)
    return [scored(image.cpu(), truth) for image in images]


def stabilised(y: Tensor, gain: float) -> Tensor:
    """Twice the root of photons has noise of level one."""
    even = denoised(2 * (y / gain + 3 / 8).sqrt(), 1.0)
    return gain * ((even / 2).square() - 1 / 8).clamp_min(0)


def stabilised_share(y: Tensor, jots: int) -> Tensor:
    """The angle whose squared sine is the share of ones has noise of level 1/√(4·jots + 2)."""
    even = denoised(torch.asin(((jots * y + 3 / 8) / (jots + 3 / 4)).sqrt()), (4 * jots + 2) ** -0.5)
    share = ((jots + 3 / 4) * even.sin().square() - 3 / 8) / jots
    return -torch.log1p(-share.clamp(0, 0.99))


@torch.no_grad()
def denoised(image: Tensor, level: float) -> Tensor:
    """By the network alone, in units of the largest value."""
    peak = image.amax((1, 2, 3), keepdim=True)
    denoiser = build_denoiser("compact").to(image.device)
    return peak * denoiser(image / peak, level / peak.flatten())


def scored(image: Tensor, truth: Tensor) -> str:
    """The mean PSNR."""
    return f"{psnr(image, truth).mean():.2f}"


if __name__ == "__main__":
    main()
