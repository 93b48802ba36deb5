"""A field of view smaller than the head: what one set of coil maps makes of it, and two.

    python examples/fold_a_scan.py espirit_full.cfl --out FOLDER

The scan is fully sampled k-space of several coils, as BART files; BART must be installed. What lies outside the middle
columns is folded onto them, as a scanner with so small a field of view would measure it. One picture shows the images
with one set of maps, above, and with two, with all lines, half of them and a third.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from pnpilot import PnPilot
from pnpilot.io.cfl import write_cfl
from pnpilot.io.kspace import read_coils
from pnpilot.recon import Options, reconstruct_file
from pnpilot.recon.fourier import to_image, to_kspace
from pnpilot.tasks._masks import build_mask

WIDTH = 112
"""Columns that are left."""
FACTORS = 1, 2, 3


def main() -> None:
    """Write the files, reconstruct them, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scan", type=Path, help="fully sampled k-space of one slice")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    out, model = arguments.out, PnPilot()
    out.mkdir(parents=True, exist_ok=True)
    kspace = folded(read_coils(arguments.scan).numpy())
    rows = []
    for sets in (1, 2):
        maps, row = out / f"maps{sets}", []
        for factor in FACTORS:
            mask = build_mask("calibrated", *kspace.shape[1:], factor, torch.Generator().manual_seed(0)).numpy()
            file = out / f"fold{factor}.cfl"
            write_cfl(file, np.moveaxis(mask * kspace, 0, -1)[None])
            if factor == 1:
                subprocess.run(["bart", "ecalib", f"-m{sets}", "-r24", file.with_suffix(""), maps], check=True)
            options = Options(maps=maps.with_suffix(".cfl"))
            where = out / f"{sets} sets"
            done = reconstruct_file(file, where, formats=["numpy", "png"], options=options, model=model, again=True)
            assert done.report is not None
            print(file.name, f"sets of maps: {sets}", done.report["images"][0]["warnings"])
            row.append(np.asarray(Image.open(where / f"fold{factor}.png")))
        rows.append(np.hstack(row))
    Image.fromarray(np.vstack(rows)).resize((2 * rows[0].shape[1], 4 * rows[0].shape[0])).save(out / "soft-sense.png")


def folded(kspace: np.ndarray) -> np.ndarray:
    """The k-space (coils, H, WIDTH) of the same object in a narrower field of view."""
    image = to_image(kspace)
    wide = image.shape[2]
    narrow = np.zeros((*image.shape[:2], WIDTH), image.dtype)
    first = wide // 2 - WIDTH // 2
    for column in range(wide):
        narrow[:, :, (column - first) % WIDTH] += image[:, :, column]
    return to_kspace(narrow).astype(np.complex64)


if __name__ == "__main__":
    main()
