"""Pictures to look at."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from ._layout import picture_paths
from .base import WRITERS, Volume, Writer

CLIPPED = 0.001
"""The share of all pixels that is drawn white: a few bright ones would leave the rest in the dark."""


@WRITERS.register("png")
class Png(Writer):
    """PNG pictures to look at: magnitudes in 8 bits, one grey scale for all images, upright where that is known."""

    suffix = ".png"
    folders = True
    holds = "magnitude, scaled and clipped, no geometry"

    def write(self, folder: Path, name: str, volume: Volume) -> list[Path]:
        """One picture, or a folder of them."""
        white = brightest(volume, CLIPPED)
        made, paths = picture_paths(self, folder, name, len(volume))
        for path, image in zip(paths, volume, strict=True):
            seen = image if volume.geometry is None else volume.geometry.upright(image, volume.axes[-2:])
            grey = np.abs(seen) * (255 / white if white > 0 else 0.0)
            Image.fromarray(np.minimum(grey, 255).round().astype(np.uint8)).save(path, pnginfo=_told(volume.about))
        return [made]


def _told(about: str) -> PngInfo:
    told = PngInfo()
    if about:
        told.add_itxt("Description", about)
    return told


def brightest(volume: Volume, share: float) -> float:
    """The magnitude that this share of all pixels reaches; no more than them and one image are kept in memory."""
    count = max(1, math.floor(share * math.prod(volume.shape)))
    top = np.zeros(0, np.float32)
    for image in volume:
        top = np.concatenate([top, np.abs(image).ravel()])
        top = np.partition(top, -count)[-count:] if len(top) > count else top
    return float(top.min())
