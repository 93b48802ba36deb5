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
    """PNG pictures to look at: magnitudes in 8 bits, one scale for all images, upright where that is known.

    Pictures that had 8 bits are not scaled.
    """

    suffix = ".png"
    folders = True
    colours = True
    holds = "magnitude, scaled and clipped, no geometry"

    def write(self, folder: Path, name: str, volume: Volume) -> list[Path]:
        """One picture, or a folder of them."""
        white = 255.0 if volume.pixels == np.uint8 else brightest(volume, CLIPPED)
        made, paths = picture_paths(self, folder, name, len(volume))
        for path, image in zip(paths, volume, strict=True):
            seen = _strength(volume.seen(image))
            seen = seen if volume.geometry is None else volume.geometry.upright(seen, volume.axes[-2:])
            shades = np.minimum(seen * (255 / white if white > 0 else 0.0), 255).round().astype(np.uint8)
            pixels = np.moveaxis(shades, 0, -1) if volume.colours else shades
            Image.fromarray(np.ascontiguousarray(pixels)).save(path, pnginfo=_told(volume.about))
        return [made]


def _strength(image: np.ndarray) -> np.ndarray:
    """Magnitudes of complex numbers; of others, what is below zero is black."""
    return (np.abs(image) if np.iscomplexobj(image) else np.maximum(image, 0)).astype(np.float32)


def _told(about: str) -> PngInfo:
    told = PngInfo()
    if about:
        told.add_itxt("Description", about)
    return told


def brightest(volume: Volume, share: float) -> float:
    """The magnitude that this share of all pixels reaches; no more than them and one image are kept in memory."""
    count = max(1, math.floor(share * math.prod(volume.shape) * (3 if volume.colours else 1)))
    top = np.zeros(0, np.float32)
    for image in volume:
        top = np.concatenate([top, np.abs(image).ravel()])
        top = np.partition(top, -count)[-count:] if len(top) > count else top
    return float(top.min())
