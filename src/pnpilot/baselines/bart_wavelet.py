"""ℓ1-wavelets by BART."""

from __future__ import annotations

from ._sense import Bart
from .base import BASELINES


@BASELINES.register("bart-wavelet")
class BartWavelet(Bart):
    """Compressed sensing with ℓ1-wavelets, by BART's `pics`."""

    penalty = "W"
