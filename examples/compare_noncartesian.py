"""A part of a scan's interleaves by PnPilot and by CG-SENSE at any number of iterations.

    python examples/compare_noncartesian.py --data mripy_spiral.mat --matrix 300 [--every 3] [--picture out.png]

The scan is non-Cartesian k-space of several coils with its trajectory, as `pnpilot reconstruct` takes it; every third
interleave is kept. All images are behind the same coil maps, those found from the interleaves that were kept.
References are CG-SENSE from all interleaves, and, free of coil maps, the root of the sum of the squares of its coils.
PSNR in dB and SSIM of the magnitude where the reference shows an object, each image with the factor that suits it best.
--choices shows instead what the package's choices are worth, one left out at a time.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.benchmark.report import table
from pnpilot.io.raw import Raw, Scratch, Stored
from pnpilot.io.readers import open_raw
from pnpilot.metrics import psnr, ssim
from pnpilot.physics import NonCartesian
from pnpilot.physics.nufft import images_of
from pnpilot.problems import open_problem
from pnpilot.problems._least_squares import conjugate_gradients
from pnpilot.problems.noncartesian import filters
from pnpilot.recon import Options, batch
from pnpilot.recon.coils import WIDEST, estimated_maps
from pnpilot.recon.fourier import to_kspace
from pnpilot.recon.modalities._along import Along
from pnpilot.recon.modalities.noncartesian import NonCartesianScan
from pnpilot.recon.sampling import middle_part

SHOWN = 2, 3, 4, 5, 7, 10, 15, 20, 30, 60
"""Iterations of CG-SENSE."""
REFERENCES = {"all: CG-SENSE, 30 iterations": (False, 30), "all: weighted CG-SENSE, 5": (True, 5)}
"""From all interleaves. Both have the edges, and not yet much noise: with weights, edges come sooner."""
FAINT = 0.08
"""An object is where the reference, smoothed over a few pixels, has this share of its peak."""


def main() -> None:
    """Print tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="file with all interleaves, which are the second axis")
    parser.add_argument("--every", type=int, default=3, help="which interleaves are kept")
    parser.add_argument("--matrix", type=int, help="pixels a side, where the file does not tell")
    parser.add_argument("--choices", action="store_true", help="what the choices of the package are worth")
    parser.add_argument("--picture", type=Path, help="where a picture goes")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    options, model = Options(matrix=given.matrix), PnPilot(device=given.device)
    with tempfile.TemporaryDirectory() as folder, open_raw(given.data, Scratch(Path(folder))) as raw:
        thin, scratch = thinned(raw, given.every), Scratch(Path(folder))
        whole, part = (NonCartesianScan(own, options, scratch) for own in (raw, thin))
        few, size = part[0], part.sizes
        every = replace(whole[0], maps=few.maps)
        narrow = NonCartesianScan(thin, replace(options, without=frozenset({"field"})), scratch)[0]
    print(*(sentence for _, sentence in few.said.values()), sep="\n", end="\n\n")
    references = {name: solved(every, weighted, count) for name, (weighted, count) in REFERENCES.items()}
    references["all: sum of squares"] = squares(whole[0])

    def found(image: Along) -> Tensor:
        y, physics = batch([image])
        return torch.complex(*model(y.to(given.device), physics.to(given.device))[0].cpu())

    images = {"PnPilot": found(few)}
    if given.choices:
        images["samples weigh the same"] = found(replace(few, weights=torch.ones_like(few.weights)))
        images["nothing beyond the field of view"] = found(narrow)
        images["maps by ESPIRiT from what is gridded"] = found(replace(few, maps=espirit(few)))
    else:
        images["its start"] = start(few)
        for name, weighted in (("CG-SENSE", False), ("weighted CG-SENSE", True)):
            images |= {f"{name}, {count} iterations": image for count, image in iterates(few, weighted)}
    references, images = cut(references, size), cut(images, size)
    rows = [[name, *(scored(image, reference) for reference in references.values())] for name, image in images.items()]
    print(table(["", *references], rows))
    if given.picture:
        names = [next(iter(references)), "CG-SENSE, 20 iterations", "weighted CG-SENSE, 4 iterations", "PnPilot"]
        draw(given.picture, {name: (references | images)[name] for name in names})


def cut(images: dict[str, Tensor], size: tuple[int, int]) -> dict[str, Tensor]:
    """Their middle parts."""
    return {name: torch.from_numpy(middle_part(image.numpy(), *size)) for name, image in images.items()}


def thinned(raw: Raw, every: int) -> Raw:
    """The same with every so many interleaves, the second axis of data and trajectory."""

    def part(stored: Stored) -> Stored:
        array = np.asarray(stored.data[tuple(slice(None) for _ in stored.data.shape)])
        return Stored(array[:, ::every], stored.axes)

    assert raw.measured is not None
    beside = {name: part(stored) for name, stored in raw.beside.items() if name == "trajectory"}
    return replace(raw, measured=part(raw.measured), beside=beside)


def iterates(image: Along, weighted: bool, maps: Tensor | None = None) -> Iterator[tuple[int, Tensor]]:
    """CG-SENSE from zero, at some numbers of iterations, each run anew."""
    own = image.maps if maps is None else maps
    weights = image.weights if weighted else torch.ones_like(image.weights)
    physics = NonCartesian(image.trajectory[None, None], own[None], weights[None, None, None])
    spectrum = filters(physics.trajectory, weights.sqrt()[None, None], own[None])
    back = torch.complex(*physics.A_adjoint(torch.view_as_real(weights * image.y).movedim(-1, 0)[None])[0])[None, None]
    height, width = own.shape[-2:]

    def normal(x: Tensor) -> Tensor:
        images = torch.fft.ifft2(spectrum * torch.fft.fft2(own * x, s=spectrum.shape[-2:]))
        return (own.conj() * images[..., :height, :width]).sum(1, keepdim=True)

    for count in SHOWN:
        yield count, conjugate_gradients(normal, back, torch.zeros_like(back), count, 0.0)[0, 0]


def solved(image: Along, weighted: bool, count: int) -> Tensor:
    """CG-SENSE at one number of iterations."""
    return next(found for at, found in iterates(image, weighted) if at == count)


def squares(image: Along) -> Tensor:
    """Each coil by itself, and the root of the sum of their squares."""
    alone = torch.ones_like(image.maps[:1])
    coils = [replace(image, y=image.y[coil : coil + 1], maps=alone) for coil in range(len(image.y))]
    return torch.stack([solved(coil, True, 5).abs() for coil in coils]).square().sum(0).sqrt()


def start(image: Along) -> Tensor:
    """Where PnPilot starts."""
    problem = open_problem(*batch([image]))
    return torch.complex(*problem.export(problem.x0())[0])


def espirit(image: Along) -> Tensor:
    """Coil maps from coil images that were only gridded, as if the middle of k-space were measured whole."""
    sizes = (image.maps.shape[-2], image.maps.shape[-1])
    kspace = to_kspace(images_of(image.weights * image.y, image.trajectory, sizes).numpy())
    return torch.from_numpy(estimated_maps(kspace.astype(np.complex64), (WIDEST, WIDEST)))


def scored(image: Tensor, reference: Tensor) -> str:
    """PSNR and SSIM."""
    where = object_in(reference)
    truth, found = reference.abs() / reference.abs().quantile(0.999), image.abs()
    found = found * (found * truth)[where].sum() / found[where].square().sum()
    pair = found[None, None], truth[None, None]
    return f"{float(psnr(*pair, where)):.2f}/{float(ssim(*pair, where)):.3f}"


def object_in(reference: Tensor) -> Tensor:
    """Flags (H, W)."""
    smooth = torch.nn.functional.avg_pool2d(reference.abs()[None, None], 9, 1, 4)
    return smooth[0, 0] > FAINT * reference.abs().quantile(0.999)


def draw(path: Path, images: dict[str, Tensor]) -> None:
    """Images, and five times their difference from the first, side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.2 * len(images), 4.7), layout="constrained", facecolor="white")
    axes = figure.subplots(2, len(images), squeeze=False)
    first = next(iter(images.values()))
    truth = first.abs() / first.abs().quantile(0.999)
    for column, (name, image) in enumerate(images.items()):
        found = image.abs() * (image.abs() * truth).sum() / image.abs().square().sum()
        axes[0, column].imshow(found.sqrt(), cmap="gray", vmin=0, vmax=math.sqrt(1.0))
        axes[1, column].imshow(5 * (found - truth).abs(), cmap="gray", vmin=0, vmax=1)
        axes[0, column].set_title(f"{name}\n{scored(image, first)}" if column else name, fontsize=8)
    axes[1, 0].set_title("below: five times the error", fontsize=8)
    for axis in axes.flat:
        axis.axis("off")
    figure.savefig(path, dpi=80)


if __name__ == "__main__":
    main()
