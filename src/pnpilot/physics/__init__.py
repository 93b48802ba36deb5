"""Operators that deepinv does not have, and what all operators share: how a batch of them is joined and split."""

from .batching import copied, divided, joined, selected
from .coded_diffraction import CodedDiffraction, ShotNoise

__all__ = ["CodedDiffraction", "ShotNoise", "copied", "divided", "joined", "selected"]
