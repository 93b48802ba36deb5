"""Operators that deepinv does not have, and what all operators share: how a batch of them is joined and split."""

from .batching import copied, divided, joined, selected
from .coded_diffraction import CodedDiffraction, ShotNoise
from .coded_fourier import CodedFourier
from .framed_blur import FramedBlur
from .noncartesian import NonCartesian
from .sense import Sense
from .single_photon import SinglePhoton
from .tomography import ParallelBeam
from .weighted import Weighted

__all__ = [
    "CodedDiffraction",
    "CodedFourier",
    "FramedBlur",
    "NonCartesian",
    "ParallelBeam",
    "Sense",
    "ShotNoise",
    "SinglePhoton",
    "Weighted",
    "copied",
    "divided",
    "joined",
    "selected",
]
