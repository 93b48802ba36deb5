"""ℓ1-wavelets by sigpy."""

from __future__ import annotations

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
        solver = L1WaveletRecon(
            kspace / scale, maps, self.weight, weights=mask, max_iter=self.iterations, show_pbar=False
        )
        return solver.run() * scale
