"""How images with a phase may be denoised by a network that knows real images alone: the options, measured.

    python examples/compare_phases.py --data FOLDER_OF_IMAGES --scan SCAN.cfl

First denoising alone, PSNR of the complex image, on photographs times smooth random phases, and on the real scan's own
image with its own phase; then whole reconstructions of the scan from a fraction of its samples, PSNR of the magnitude.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.benchmark.report import table
from pnpilot.benchmark.scan import Scan, combined, estimated_maps
from pnpilot.denoisers import Denoiser, build_denoiser
from pnpilot.denoisers.base import freeze
from pnpilot.io.images import image_paths, read_image
from pnpilot.io.kspace import read_coils
from pnpilot.phase import gauge, middle

LEVELS = 5, 15, 25, 50
SETTINGS = "calibrated x4", "radial x4", "random x6"


class Option(Denoiser):
    """The shipped network, with another way to denoise complex images."""

    def __init__(self, inner: Denoiser, way: Callable[[Denoiser, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.inner, self.way = inner, way

    def forward(self, x: Tensor, sigma: Tensor | float) -> Tensor:
        """As the network, unless x is complex."""
        return self.way(self.inner, x, torch.as_tensor(sigma)) if x.is_complex() else self.inner(x, sigma)


def as_they_are(network: Denoiser, x: Tensor, sigma: Tensor) -> Tensor:
    """Real and imaginary part, each lifted to values that are not negative."""
    return torch.complex(network.signed(x.real, sigma), network.signed(x.imag, sigma))


def real_part(network: Denoiser, x: Tensor, sigma: Tensor) -> Tensor:
    """The real part in the gauge; the imaginary part is dropped."""
    turn = gauge(x)
    return network((x * turn.conj()).real, sigma) * turn


def magnitude(network: Denoiser, x: Tensor, sigma: Tensor) -> Tensor:
    """The magnitude; the phase of every pixel stays as it is."""
    return torch.polar(network(x.abs(), sigma), x.angle())


def both_parts(network: Denoiser, x: Tensor, sigma: Tensor) -> Tensor:
    """What ships: both parts in the gauge."""
    return network(x, sigma)


WAYS = {
    "parts as they are": as_they_are,
    "magnitude": magnitude,
    "gauge, real part": real_part,
    "gauge, both parts": both_parts,
}


def main() -> None:
    """Print both tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of images of 128×128 or more")
    parser.add_argument("--scan", type=Path, required=True, help="fully sampled multi-coil k-space")
    arguments = parser.parse_args()
    network = build_denoiser("compact")
    options = {name: freeze(Option(network, way)) for name, way in WAYS.items()}

    kspace = read_coils(arguments.scan)
    scan = Scan(kspace, estimated_maps(kspace))
    photographs = torch.stack([read_image(path, (128, 128)) for path in image_paths(arguments.data)])
    own = combined(kspace, scan.maps)[None, None] / scan.peak
    sources = {"photographs": photographs * random_phases(photographs), "the scan": own}
    lines = []
    for name, option in options.items():
        cells = [f"{denoised(option, image, level):.2f}" for image in sources.values() for level in LEVELS]
        lines.append([name, *cells])
    print(table(["", *(f"{source} σ{level}" for source in sources for level in LEVELS)], lines), flush=True)

    cases = {"8 coils": scan, "combined": scan.one_coil("combined"), "coil 3": scan.one_coil("3")}
    columns = [("8 coils", setting) for setting in SETTINGS] + [(name, "radial x4") for name in list(cases)[1:]]
    lines = []
    for name, option in options.items():
        model, cells = PnPilot(option), []
        for case, setting in columns:
            y, physics, _ = cases[case].measure(setting, seed=0)
            cells.append(f"{cases[case].scored(model.reconstruct(y, physics).image)['psnr']:.2f}")
        lines.append([name, *cells])
    print("\n" + table(["", *(f"{case}, {setting}" for case, setting in columns)], lines))


def random_phases(like: Tensor) -> Tensor:
    """Smooth phase factors of several radians (B, 1, H, W)."""
    height, width = like.shape[-2:]
    grain = torch.randn(like.shape, generator=torch.Generator().manual_seed(0))
    window = torch.fft.ifftshift(middle(height, width, side=8))
    smooth = torch.fft.ifft2(window * torch.fft.fft2(grain)).real
    angle = 1.5 * smooth / smooth.std((1, 2, 3), keepdim=True)
    return torch.polar(torch.ones_like(angle), angle)


def denoised(option: Denoiser, image: Tensor, level: float) -> float:
    """Mean PSNR of the complex image after denoising; the peak is one."""
    generator, sigma = torch.Generator().manual_seed(0), level / 255
    noise = torch.view_as_complex(torch.randn(*image.shape, 2, generator=generator))
    with torch.no_grad():
        found = option(image + sigma * noise, torch.full((len(image),), sigma))
    error = (found - image).abs().square().mean((1, 2, 3)) / 2  # per part, as noise levels are
    return float((-10 * error.log10()).mean())


if __name__ == "__main__":
    main()
