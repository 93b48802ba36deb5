"""Small scans for tests: k-space of a phantom behind simulated coils."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from pnpilot.recon.fourier import to_kspace
from pnpilot.tasks._masks import build_mask
from pnpilot.tasks.multi_coil import simulated_maps
from tests.conftest import phantom


def pictures(count: int, height: int = 40, width: int = 32) -> np.ndarray:
    """Different complex images (count, H, W), with air around them."""
    rows, columns = np.linspace(-1, 1, height)[:, None], np.linspace(-1, 1, width)
    inside = rows**2 + columns**2 < 0.8
    return inside * phantom(height, width, count)[:, 0].numpy() * np.exp(1j * (0.4 + rows - 0.7 * columns))


def slices(count: int, coils: int = 1, height: int = 40, width: int = 32, noise: float = 0.01) -> np.ndarray:
    """k-space (count, coils, H, W) of those images, half of the samples measured, with noise."""
    generator = torch.Generator().manual_seed(0)
    maps = simulated_maps(coils, height, width, generator).numpy() if coils > 1 else np.ones((1, height, width))
    mask = build_mask("random", height, width, 2, generator).numpy()
    rng = np.random.default_rng(0)
    shape = (count, coils, height, width)
    grain = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    kspace = to_kspace(maps * pictures(count, height, width)[:, None])
    return (mask * (kspace + noise * grain)).astype(np.complex64)


def saved(path: Path, kspace: np.ndarray) -> Path:
    """An .npz that names its axes, or an .npy that does not."""
    if path.suffix == ".npz":
        np.savez(path, kspace=kspace, axes=np.array(["slice", "coil", "y", "x"]))
    else:
        np.save(path, kspace)
    return path
