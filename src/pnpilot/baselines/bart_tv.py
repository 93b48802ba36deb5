"""Total variation by BART."""

from __future__ import annotations

from ._sense import Bart
from .base import BASELINES


@BASELINES.register("bart-tv")
class BartTV(Bart):
    """Compressed sensing with total variation, by BART's `pics`."""

    penalty = "T"
