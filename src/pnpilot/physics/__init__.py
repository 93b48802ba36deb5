"""Operators that deepinv does not have, and what all operators share: how a batch of them is joined and split."""

from .batching import copied, divided, joined, selected
from .coded_diffraction import CodedDiffraction, ShotNoise
from .sense import Sense

__all__ = ["CodedDiffraction", "Sense", "ShotNoise", "copied", "divided", "joined", "selected"]
