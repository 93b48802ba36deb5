"""Pictures with a known blur, as files: PnPilot beside the deconvolution of scikit-image.

    python examples/compare_deconvolution.py --kernels levin09.npz [--pictures FOLDER] [--size 192] [--device cuda]

Photographs are scikit-image's, and those of a folder, behind kernels of Levin et al.; micrographs are synthetic nuclei
and a field of galaxies behind an Airy disc, in counts of photons. What lies beyond the border of a picture is blurred
into it, as in any photograph. A blurred picture with noise is written as a TIFF, the kernel as another, and
`reconstruct_file` gets no more than the two. The table has PSNR in dB inside, and nearer to the border than the kernel
is wide.

The others are told more: the truth, by which their parameter is chosen for each column (unsupervised Wiener has none).
They take pictures for periodic, or for black outside, so they get them mirrored at the border, which is better for them
than as they are, and each colour by itself.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tifffile
from PIL import Image
from scipy.ndimage import gaussian_filter
from scipy.signal import fftconvolve
from scipy.special import j1
from skimage import data, restoration

from pnpilot import PnPilot
from pnpilot.benchmark.report import table
from pnpilot.recon import Options, reconstruct_file

BLACK, READ = 100, 1.5
"""What a camera adds to each pixel, and its read noise."""
UNWEIGHTED, OURS = "PnPilot, `--without photons`", "**PnPilot**"
Method = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Column:
    """Pictures (H, W, 1 or 3) in [0, 1] behind kernels, with noise of a level, or of photons."""

    pictures: list[np.ndarray]
    kernels: list[np.ndarray]
    sigma: float | None = None
    counts: float = 0

    def measured(self, truth: np.ndarray, kernel: np.ndarray, seed: int) -> np.ndarray:
        """What a camera stores."""
        rng = np.random.default_rng(seed)
        blurred = np.stack([fftconvolve(colour, kernel, mode="valid") for colour in np.moveaxis(truth, -1, 0)], -1)
        if self.sigma is None:
            counts = BLACK + rng.poisson(self.counts * blurred.clip(0)) + READ * rng.standard_normal(blurred.shape)
            return counts.round().clip(0, 65535).astype(np.uint16)
        return (255 * blurred + self.sigma * rng.standard_normal(blurred.shape)).round().clip(0, 255).astype(np.uint8)

    def bright(self, stored: np.ndarray) -> np.ndarray:
        """In the units of the truth."""
        return stored / 255 if self.sigma is not None else (stored.astype(float) - BLACK) / self.counts


def middle(picture: np.ndarray, size: int) -> np.ndarray:
    """Its middle, in [0, 1]."""
    rows, columns = (max(length - size, 0) // 2 for length in picture.shape[:2])
    return np.atleast_3d(picture[rows : rows + size, columns : columns + size] / 255)


def nuclei(size: int, seed: int) -> np.ndarray:
    """Blobs with texture on a dark ground."""
    blobs = data.binary_blobs(size, 0.08, volume_fraction=0.25, rng=seed)
    texture = gaussian_filter(np.random.default_rng(seed).standard_normal((size, size)), 2)
    return np.atleast_3d((0.05 + gaussian_filter(blobs * (0.6 + 2 * texture).clip(0.1, 1), 0.7)).clip(0, 1))


def airy(first_zero: float = 3.5, side: int = 25) -> np.ndarray:
    """What a lens makes of a point; the radius of its first dark ring in pixels."""
    place = np.arange(side) - side // 2
    radius = 3.8317 / first_zero * np.hypot(place[:, None], place).clip(1e-9)
    light = (2 * j1(radius) / radius) ** 2
    return light / light.sum()


def ours(model: PnPilot, folder: Path, column: Column, *left_out: str) -> Method:
    """Files in, a file out. That kernels are centred in their files is the convention of the truth."""

    def run(stored: np.ndarray, kernel: np.ndarray) -> np.ndarray:
        kind = "rgb" if stored.shape[-1] == 3 else "minisblack"
        tifffile.imwrite(folder / "picture.tif", stored.squeeze(), photometric=kind)
        tifffile.imwrite(folder / "psf.tif", kernel.astype(np.float32))
        options = Options(psf=folder / "psf.tif", without=frozenset({"centring", *left_out}))
        done = reconstruct_file(folder / "picture.tif", folder / "out", options=options, model=model, again=True)
        return column.bright(np.atleast_3d(tifffile.imread(done.written[0])))

    return run


def theirs(column: Column, method: Method) -> Method:
    """Each colour by itself, mirrored at the border."""

    def run(stored: np.ndarray, kernel: np.ndarray) -> np.ndarray:
        rows, columns = kernel.shape
        reach = ((rows, rows), (columns, columns))
        padded = [np.pad(one, reach, mode="symmetric") for one in np.moveaxis(column.bright(stored), -1, 0)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = np.stack([method(colour, kernel) for colour in padded], -1)
        return found[rows:-rows, columns:-columns]

    return run


def rivals(column: Column) -> dict[str, list[Method]]:
    """Methods with all of their parameters."""
    lucy = [lambda y, k, n=n: restoration.richardson_lucy(y.clip(1e-4), k, n, clip=False) for n in (5, 10, 20, 40)]
    wiener = [lambda y, k, b=b: restoration.wiener(y, k, b, clip=False) for b in np.logspace(-2, 2, 9)]
    alone = [lambda y, k: restoration.unsupervised_wiener(y, k, clip=False, rng=0)[0]]
    kinds = {"Richardson–Lucy": lucy, "Wiener": wiener, "unsupervised Wiener": alone}
    return {name: [theirs(column, method) for method in methods] for name, methods in kinds.items()}


def scores(found: np.ndarray, truth: np.ndarray, side: int) -> list[float]:
    """PSNR inside and at the border."""
    error, inside = np.square(found.clip(0, 1) - truth).mean(-1), np.zeros(truth.shape[:2], bool)
    inside[side:-side, side:-side] = True
    return [float(-10 * np.log10(error[part].mean())) for part in (inside, ~inside)]


def cells(column: Column, methods: dict[str, list[Method]]) -> dict[str, str]:
    """The mean of each method, with the parameter that is best inside."""
    found: dict[str, list[list[list[float]]]] = {name: [[] for _ in own] for name, own in methods.items()}
    for seed, picture in enumerate(column.pictures):
        for kernel in column.kernels:
            stored, (rows, columns) = column.measured(picture, kernel, seed), (side // 2 for side in kernel.shape)
            truth = picture[rows : rows + stored.shape[0], columns : columns + stored.shape[1]]
            for name, parameters in methods.items():
                for method, kept in zip(parameters, found[name], strict=True):
                    kept.append(scores(method(stored, kernel), truth, max(kernel.shape)))
    best = {name: max((np.mean(kept, 0) for kept in own), key=lambda own: own[0]) for name, own in found.items()}
    return {name: f"{inside:.2f}, {border:.2f}" for name, (inside, border) in best.items()}


def columns(kernels: list[np.ndarray], folder: Path | None, size: int) -> dict[str, Column]:
    """What is compared."""
    paths: Iterable[Path] = sorted(folder.glob("*.png")) if folder else []
    taken = [data.astronaut(), data.chelsea(), data.coffee(), *(np.asarray(Image.open(path)) for path in paths)]
    photographs = [middle(picture, size) for picture in taken]
    cells = [nuclei(size, 0), nuclei(size, 1), middle(data.hubble_deep_field().max(-1), size)]
    return {
        "photographs, σ = 2 of 255": Column(photographs, kernels, 2),
        "photographs, σ = 8": Column(photographs, kernels, 8),
        "photographs, 400 photons": Column(photographs, kernels, counts=400),
        "micrographs, 20 photons": Column(cells, [airy()], counts=20),
        "micrographs, 100 photons": Column(cells, [airy()], counts=100),
        "micrographs, 500 photons": Column(cells, [airy()], counts=500),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=Path, required=True)
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--size", type=int, default=192)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    levin = np.load(options.kernels)
    model, found = PnPilot(device=options.device), {}
    with tempfile.TemporaryDirectory() as folder:
        for name, column in columns([levin["k1"], levin["k4"]], options.pictures, options.size).items():
            methods = {"blurred": [lambda stored, _, column=column: column.bright(stored)], **rivals(column)}
            if column.sigma is None:
                methods[UNWEIGHTED] = [ours(model, Path(folder), column, "photons")]
            found[name] = cells(column, {**methods, OURS: [ours(model, Path(folder), column)]})
            print(name, found[name], file=sys.stderr, flush=True)
    names = ["blurred", *rivals(column), UNWEIGHTED, OURS]
    print(
        table(["inside, border", *found], [[name, *(own.get(name, "–") for own in found.values())] for name in names])
    )


if __name__ == "__main__":
    main()
