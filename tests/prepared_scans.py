"""Scans of a phantom behind simulated coils, prepared as those from files are, and what they show."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pnpilot.io.raw import Raw, Scratch, Stored
from pnpilot.recon.fourier import to_image, to_kspace
from pnpilot.recon.modalities._slice import Slice
from pnpilot.recon.modalities.cartesian import Cartesian
from pnpilot.recon.options import Options
from pnpilot.tasks.multi_coil import simulated_maps
from tests.conftest import phantom

HEIGHT, WIDTH, COILS = 48, 40, 4
COIL_AXES = ("coil", "y", "x")
needs_bart = pytest.mark.skipif(shutil.which("bart") is None, reason="BART is not installed: apt-get install bart")
UNUSED = Scratch(Path("/nowhere"))


def maps_of(coils: int = COILS, height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    return simulated_maps(coils, height, width, torch.Generator().manual_seed(1)).numpy()


def object_of(height: int = HEIGHT, width: int = WIDTH, number: int = 0) -> np.ndarray:
    """An object with a phase, and air around it."""
    rows, columns = np.linspace(-1, 1, height)[:, None], np.linspace(-1, 1, width)
    inside = rows**2 + columns**2 < 0.7
    return phantom(height, width, number + 1)[number, 0].numpy() * inside * np.exp(1j * (rows - 0.7 * columns))


def grain(*shape: int, seed: int = 0) -> np.ndarray:
    """Noise of level one in each part."""
    parts = np.random.default_rng(seed).standard_normal((2, *shape))
    return np.asarray(parts[0] + 1j * parts[1], np.complex64)


def coils_of(noise: float = 0.0, coils: int = COILS, height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """K-space (coils, H, W)."""
    kspace = to_kspace(maps_of(coils, height, width) * object_of(height, width))
    return np.asarray(kspace + noise * grain(*kspace.shape), np.complex64)


def scan(
    kspace: np.ndarray, axes: tuple[str, ...] = COIL_AXES, *, folder: Path | None = None, **others: Any
) -> Cartesian:
    """A scan as a reader would give it. What does not belong to the file or is an option, is taken out of `others`."""
    maps, noise = others.pop("given", None), others.pop("scanned", None)
    without, always = (frozenset(others.pop(name, ())) for name in ("without", "always"))
    raw = Raw(Stored(kspace, axes), "numpy", **{name: _stored(value) for name, value in others.items()})
    files = [None if array is None else Raw(_stored(array), "numpy") for array in (maps, noise)]
    return Cartesian(
        raw, Options(without=without, always=always), UNUSED if folder is None else Scratch(folder), *files
    )


def _stored(value: Any) -> Any:
    return Stored(value) if isinstance(value, np.ndarray) else value


def seen(image: Slice) -> np.ndarray:
    """What fully sampled data show behind their maps (H, W): the solution of least squares."""
    assert image.maps is not None
    maps, coils = image.maps[0].numpy(), to_image(image.y.numpy())
    return np.asarray((maps.conj() * coils).sum(0) / np.maximum((np.abs(maps) ** 2).sum(0), 1e-9))


def apart(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference, in units of the largest value."""
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def wide() -> tuple[np.ndarray, np.ndarray]:
    """K-space that was read out twice as densely as needed, and the maps of its whole field of view."""
    around = ((0, 0), (0, 0), (WIDTH // 2, WIDTH // 2))
    maps = np.pad(maps_of(), around, mode="edge")
    kspace = to_kspace(maps * np.pad(object_of(), around[1:]))
    return (kspace + 0.005 * grain(*kspace.shape)).astype(np.complex64), maps
