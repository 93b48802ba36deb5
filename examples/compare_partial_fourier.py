"""What the phase constraint does for partial Fourier, and how strong it should be.

    python examples/compare_partial_fourier.py espirit_full.cfl

The scan is fully sampled k-space of several coils, as BART files. A part of it is cut off on one side; then it is
reconstructed with constraints of different weight λ. PSNR in dB and SSIM are of the magnitude inside the head.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.benchmark.report import table
from pnpilot.benchmark.scan import Scan, estimated_maps
from pnpilot.io.kspace import read_coils
from pnpilot.io.raw import Raw, Scratch, Stored
from pnpilot.recon import Options, batch, partial_fourier
from pnpilot.recon.modalities import cartesian
from pnpilot.tasks._masks import build_mask

WEIGHTS = 0.0, 0.003, 0.01, 0.03, 0.1
CUTS = (0, 0.75, 1), (0, 0.625, 1), (1, 0.75, 1), (1, 0.625, 1), (1, 0.75, 2), (1, 0.625, 2)
"""The axis, the part that is kept, and how many times the columns are undersampled besides."""


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scan", type=Path, help="fully sampled k-space of one slice")
    kspace = read_coils(parser.parse_args().scan)
    scan, model, lines = Scan(kspace, estimated_maps(kspace)), PnPilot(), []
    for axis, kept, factor in CUTS:
        mask = cut(kspace.shape[1], kspace.shape[2], axis, kept, factor)
        cells = []
        for weight in WEIGHTS:
            partial_fourier.HELD = cartesian.HELD = weight
            raw = Raw(Stored((mask * kspace).numpy(), ("coil", "y", "x")), "numpy")
            options = Options(without=frozenset() if weight else frozenset({"phase"}))
            image = cartesian.Cartesian(raw, options, Scratch(Path()), None, None)[0]
            found = model.reconstruct(*batch([image])).image
            scores = scan.scored(found)
            cells.append(f"{scores['psnr']:.2f}/{scores['ssim']:.4f}")
        way = f"{100 * kept:g} % of the {('rows', 'columns')[axis]}"
        lines.append([way + (f", ×{factor}" if factor > 1 else ""), *cells])
    print(table(["", *(f"λ = {weight:g}" if weight else "none" for weight in WEIGHTS)], lines))


def cut(height: int, width: int, axis: int, kept: float, factor: int) -> Tensor:
    """A mask (H, W) whose last rows or columns are missing."""
    mask = build_mask("calibrated", height, width, factor, torch.Generator().manual_seed(0))
    lines = torch.arange((height, width)[axis]) < round(kept * (height, width)[axis])
    return mask * (lines[:, None] if axis == 0 else lines)


if __name__ == "__main__":
    main()
