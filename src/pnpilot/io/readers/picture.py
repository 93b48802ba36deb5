"""Pictures of everyday formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...errors import require
from ..files import PNG
from ..images import SUFFIXES, grey_page, opened
from ..raw import SLICE, Raw, Scratch, Stored, checked_shape
from ._lazy import without_names
from .base import READERS, Reader

SIGNATURES = (PNG, b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


@READERS.register("picture")
class Picture(Reader):
    """PNG, JPEG, BMP and TIFF, in shades of grey; the pages of a TIFF are slices."""

    suffixes = tuple(sorted(SUFFIXES))
    known_by = "its first bytes"
    shape = "y, x; or slice, y, x"
    units = "shades of grey at the depth of the file, 8 or 16 bits as a rule"

    @classmethod
    def knows(cls, path: Path, head: bytes) -> bool:  # noqa: ARG003
        """Two letters are little for BMP; its reserved bytes are zero."""
        return head.startswith(SIGNATURES) or (head.startswith(b"BM") and head[6:10] == bytes(4))

    def read(self, path: Path, scratch: Scratch, key: str | None = None) -> Raw:
        """Decode one page after the other, to the scratch folder."""
        without_names(key)
        with opened(path) as file:
            pages = getattr(file, "n_frames", 1) if file.format == "TIFF" else 1
            coloured = file.mode not in ("1", "L", "LA", "I", "F") and not file.mode.startswith("I;16")
            size = (pages, file.height, file.width)
            checked_shape(size, np.dtype(np.uint8), path.stat().st_size, "its picture")
            dtype = grey_page(file).dtype
            array = scratch.array(size, dtype)
            for page in range(pages):
                file.seek(page)
                require((file.height, file.width) == size[1:], f"page {page + 1} has another size than the first")
                pixels = grey_page(file)
                require(pixels.dtype == dtype, f"page {page + 1} has another depth than the first")
                array[page] = pixels
        stored = Stored(array[0], ("y", "x")) if pages == 1 else Stored(array, (SLICE, "y", "x"))
        raw = Raw(stored, "png", pictures=True)
        if coloured:
            raw.notes.append("its colours were turned to shades of grey")
        return raw
