"""A tomogram from a part of its angles: filtered back-projection, total variation and ours.

    python examples/compare_tomography.py tooth.h5 [--every 3] [--slices 1] [--bin 1] [--device cuda] [--picture t.png]

The file is a DataExchange tomogram. Axis of rotation and odd detector pixels are found from the angles that are kept,
for all methods alike; what all of them are compared with is made from all angles: by filtered back-projection, and by
least squares (20 iterations of conjugate gradients). PSNR in dB and SSIM are inside the disk that all angles see, in
units of the largest value there. Both references hold noise, and that of the angles that are kept is also in the
estimates; so the last column asks nobody's image: it is how far the image is from the projections that were left out,
in units of their noise, which is 1 at best.

Total variation is deepinv's, by FISTA, with each of several weights; the table has the one that scores best against
filtered back-projection of all angles, which only someone who has that can choose.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from deepinv.optim import FISTA, L2, TVPrior
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.benchmark.report import table
from pnpilot.io.raw import Raw, Scratch, Stored
from pnpilot.io.readers import open_raw
from pnpilot.metrics import psnr, ssim
from pnpilot.physics import ParallelBeam
from pnpilot.problems._least_squares import conjugate_gradients, operator_norm
from pnpilot.recon import Options, batch
from pnpilot.recon.modalities._sinogram import Sinogram
from pnpilot.recon.modalities.tomography import Tomography

WEIGHTS = 0.5, 1.0, 2.0, 4.0, 8.0, 16.0
"""Of total variation, in units of the noise level squared over a hundredth of the peak."""


def binned(stored: Stored, bins: int) -> Stored:
    """The same frames with so many neighbouring detector pixels counted as one."""
    data = np.asarray(stored.data[:], float)
    width = data.shape[-1] // bins * bins
    return Stored(data[..., :width].reshape(*data.shape[:-1], -1, bins).sum(-1), stored.axes)


def sinograms(raw: Raw, every: int, slices: int, bins: int, scratch: Scratch) -> list[Sinogram]:
    """The first slices, of every so manieth angle."""
    assert raw.measured is not None
    part = {name: binned(raw.beside[name], bins if name != "angles" else 1) for name in raw.beside}
    if "angles" in part:
        part["angles"] = replace(part["angles"], data=part["angles"].data[::every].ravel())
    whole = binned(raw.measured, bins)
    data = replace(whole, data=whole.data[::every])
    tomogram = Tomography(replace(raw, measured=data, beside=part), Options(), scratch)
    for note in tomogram.notes:
        print(f"{len(tomogram.angles)} angles: {note}")
    return [tomogram[number] for number in range(min(slices, len(tomogram)))]


def data_of(sinogram: Sinogram, device: str) -> tuple[Tensor, ParallelBeam, Tensor]:
    """Weighted data, their physics, and the line integrals without weights."""
    y, physics = batch([sinogram])
    assert isinstance(physics, ParallelBeam)
    return y.to(device), physics.to(device), torch.from_numpy(sinogram.rays.integrals).float()[None, None].to(device)


def least_squares(y: Tensor, physics: ParallelBeam, iterations: int = 20) -> Tensor:
    """Conjugate gradients from zero."""
    back = physics.A_adjoint(y)
    return conjugate_gradients(lambda x: physics.A_adjoint(physics.A(x)), back, torch.zeros_like(back), iterations)


def total_variation(y: Tensor, physics: ParallelBeam, start: Tensor, weight: float, iterations: int) -> Tensor:
    """argmin ½‖Ax − y‖² + weight·TV(x), with A of norm one."""
    norm = operator_norm(lambda x: physics.A_adjoint(physics.A(x)), start)
    prior = TVPrior(def_crit=0.0, n_it_max=20)
    solver = FISTA(
        data_fidelity=L2(),
        prior=prior,
        lambda_reg=weight,
        stepsize=float(norm**-2),
        max_iter=iterations,
        early_stop=False,
    )
    return solver(y, physics, init=(start, start))


def left_out(image: Tensor, whole: Sinogram, kept: Sinogram) -> float:
    """Root mean square distance from the projections that were not used, in units of their noise."""
    other = ~np.isin(whole.angles, kept.angles)
    rays = replace(whole.rays, integrals=whole.rays.integrals[other], variance=np.asarray(whole.rays.variance)[other])
    y, physics, _ = data_of(replace(whole, rays=rays, angles=whole.angles[other]), str(image.device))
    wrong = (physics.A(image) - y) / float(np.sqrt(np.median(rays.variance[~rays.lost])))
    return float(wrong[physics.weights.expand_as(wrong) > 0].square().mean().sqrt())


@torch.no_grad()
def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--every", type=int, default=3, help="keep every so manieth angle")
    parser.add_argument("--slices", type=int, default=1)
    parser.add_argument("--bin", type=int, default=1, help="count so many neighbouring detector pixels as one")
    parser.add_argument("--iterations", type=int, default=300, help="of FISTA")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--picture", type=Path)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, open_raw(told.file, Scratch(Path(folder))) as raw:
        wholes, parts = (
            sinograms(raw, every, told.slices, told.bin, Scratch(Path(folder))) for every in (1, told.every)
        )
    model, lines, shown = PnPilot(device=told.device), [], {}
    for number, (whole, part) in enumerate(zip(wholes, parts, strict=True)):
        y, physics, integrals = data_of(whole, told.device)
        by_fbp, by_squares = physics.fbp(integrals), least_squares(y, physics)
        inside = physics.seen().to(told.device)

        def scores(image: Tensor, reference: Tensor, inside: Tensor = inside) -> tuple[float, float]:
            peak = torch.quantile(reference[..., inside], 0.9999)
            return float(psnr(image / peak, reference / peak, inside)), float(
                ssim(image / peak, reference / peak, inside)
            )

        y, physics, integrals = data_of(part, told.device)
        start = physics.fbp(integrals)
        unit = 100 * part.level**2 / float(torch.quantile(start[..., inside], 0.9999))
        images: dict[str, Any] = {"FBP": start, "least squares": least_squares(y, physics)}
        varied = {}
        for weight in WEIGHTS:
            varied[weight] = total_variation(y, physics, start, weight * unit, told.iterations)
            print(f"slice {number}: TV of weight {weight:g}: {scores(varied[weight], by_fbp)[0]:.2f} dB", flush=True)
        best = max(varied, key=lambda weight: scores(varied[weight], by_fbp)[0])
        result = model.reconstruct(y, physics)
        images |= {f"TV, weight {best:g}": varied[best], "ours": result.image}
        for warning in result.warnings:
            print(f"slice {number}: {warning}")
        for name, image in images.items():
            cells = [
                "/".join(f"{own:.{2 + 2 * place}f}" for place, own in enumerate(scores(image, reference)))
                for reference in (by_fbp, by_squares)
            ]
            lines.append([f"slice {number}: {name}", *cells, f"{left_out(image, whole, part):.2f}"])
        if number == 0:
            shown = {f"{len(whole.angles)} angles, FBP": by_fbp, **images}
    head = [f"{len(parts[0].angles)} of {len(wholes[0].angles)} angles", "against FBP of all", "against least squares"]
    print(table([*head, "from what was left out"], lines))
    if told.picture is not None:
        draw(shown, told.picture)


def draw(images: dict[str, Tensor], path: Path) -> None:
    """The middle of the images beside each other."""
    from matplotlib.figure import Figure

    first = next(iter(images.values()))[0, 0].cpu()
    rows, columns = ((first > 0.3 * torch.quantile(first.flatten()[::7], 0.999)).any(axis).nonzero() for axis in (1, 0))
    cut = slice(int(rows.min()), int(rows.max())), slice(int(columns.min()), int(columns.max()))
    high = float(torch.quantile(first.flatten()[::7], 0.999))
    figure = Figure(figsize=(3 * len(images), 3.3), layout="constrained")
    for axes, (name, image) in zip(figure.subplots(1, len(images)), images.items(), strict=True):
        axes.imshow(image[0, 0].cpu()[cut], cmap="gray", vmin=0, vmax=1.1 * high)
        axes.set_title(name, fontsize=9)
        axes.axis("off")
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main()
