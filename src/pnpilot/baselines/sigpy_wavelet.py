"""ℓ1-wavelets by sigpy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ._sense import Sense
from .base import BASELINES


@BASELINES.register("sigpy-wavelet")
class SigpyWavelet(Sense):
    """Compressed sensing with ℓ1-wavelets, by sigpy's `L1WaveletRecon`."""

    reference = "Ong & Lustig, ISMRM 2019: sigpy"
    modules = ("sigpy",)
    weights = (3e-4, 3e-2)

    def solve(self, kspace: np.ndarray, maps: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """FISTA, with the weight in units of the largest value of the zero-filled image."""
        from sigpy.mri.app import L1WaveletRecon
        from sigpy.mri.linop import Sense as Encoding

        scale = np.abs(Encoding(maps).H(kspace)).max() or 1.0
        with _seeded():
            solver = L1WaveletRecon(
                kspace / scale, maps, self.weight, weights=mask, max_iter=self.iterations, show_pbar=False
            )
            return solver.run() * scale


@contextmanager
def _seeded() -> Iterator[None]:
    """It measures its step size from a start drawn with NumPy's global generator, which is left as it was."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
