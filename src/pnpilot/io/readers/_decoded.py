"""Pictures as Pillow decodes them, for several readers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...errors import require
from ..images import opened, page
from ..raw import COLOUR, SLICE, Raw, Scratch, Stored, checked_shape

DEEP = "its colours have 16 bits, of which 8 are read: a TIFF keeps them all"


def decoded(path: Path, scratch: Scratch) -> Raw:
    """Decode one page after the other, to the scratch folder."""
    with opened(path) as file:
        pages = getattr(file, "n_frames", 1) if file.format == "TIFF" else 1
        size = (pages, file.height, file.width)
        checked_shape(size, np.dtype(np.uint8), path.stat().st_size, "its picture")
        shallow = ";16" in str(file.tile) and not file.mode.startswith("I;16")
        transparent = file.has_transparency_data
        first = page(file)
        array = scratch.array((pages, *first.shape), first.dtype)
        array[0] = first
        for number in range(1, pages):
            file.seek(number)
            require((file.height, file.width) == size[1:], f"page {number + 1} has another size than the first")
            pixels = page(file)
            like = (pixels.dtype, pixels.ndim) == (first.dtype, first.ndim)
            require(like, f"page {number + 1} has another depth than the first, or is not in colour as that is")
            array[number] = pixels
        family = "png" if first.dtype == np.uint8 and file.format != "TIFF" else "tiff"
    axes = (SLICE, "y", "x", COLOUR)[: array.ndim]
    stored = Stored(array, axes) if pages > 1 else Stored(array[0], axes[1:])
    raw = Raw(stored, family, pictures=True)
    raw.notes += [DEEP] if shallow else []
    raw.notes += ["its transparency was left out"] if transparent else []
    return raw
