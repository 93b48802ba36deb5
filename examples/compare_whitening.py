"""What whitening is worth, by the true covariance of the coils' noise and by that of the outermost samples.

    python examples/compare_whitening.py espirit_full.cfl

The truth is clean: what `PnPilot()` makes of the whole scan, measured anew behind the scan's own maps. Noise is added
with the covariance that the scan shows, and with one coil five times as noisy. PSNR in dB of the magnitude inside the
head.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.benchmark.report import table
from pnpilot.benchmark.scan import Scan, centred_fft2, estimated_maps
from pnpilot.io.kspace import read_coils
from pnpilot.io.raw import Raw, Scratch, Stored
from pnpilot.recon import Options, batch
from pnpilot.recon.modalities._slice import Slice
from pnpilot.recon.modalities.cartesian import Cartesian
from pnpilot.whitening import coil_covariance

SETTINGS = "radial x2", "radial x4", "calibrated x2"
WAYS = {
    "left as it is": Options(without=frozenset({"whitening"})),
    "a noise scan": Options(),
    "outermost samples": Options(always=frozenset({"whitening"})),
}
LOUD = 5
"""How much noisier one coil is."""


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scan", type=Path, help="fully sampled k-space of one slice")
    kspace = read_coils(parser.parse_args().scan)
    maps, model = estimated_maps(kspace), PnPilot()
    whole = Slice(0, kspace, torch.ones(kspace.shape[1:]), maps[None])
    real, imaginary = model.reconstruct(*batch([whole])).image[0]
    clean = centred_fft2(maps * torch.complex(real, imaginary))
    scan, covariance = Scan(clean, maps), coil_covariance(kspace)
    loud = torch.eye(len(kspace)).to(covariance)
    loud[2, 2] = LOUD
    lines = []
    for name, own in (("the scan's noise", covariance), ("one loud coil", loud @ covariance @ loud)):
        noise, alone = (drawn(own, clean.shape[1:], seed) for seed in (1, 2))
        for setting in SETTINGS:
            y, *_ = Scan(clean + noise, maps).measure(setting, 0)
            data = torch.complex(y[0, 0], y[0, 1]).numpy()
            cells = []
            for way, options in WAYS.items():
                raw = Raw(Stored(data, ("coil", "y", "x")), "numpy")
                if way == "a noise scan":
                    raw.noise = Stored(alone.flatten(1).numpy(), ("coil", "sample"))
                image = Cartesian(raw, options, Scratch(Path()))[0]
                cells.append(f"{scan.scored(model.reconstruct(*batch([image])).image)['psnr']:.2f}")
            lines.append([f"{name}, {setting}", *cells])
    print(table(["", *WAYS], lines))


def drawn(covariance: Tensor, shape: tuple[int, ...], seed: int) -> Tensor:
    """Noise of coils (coils, H, W)."""
    parts = np.random.default_rng(seed).standard_normal((2, len(covariance), *shape)).astype(np.float32)
    white = torch.complex(*torch.from_numpy(parts))
    return torch.einsum("dc,chw->dhw", torch.linalg.cholesky(covariance), white)


if __name__ == "__main__":
    main()
