"""Pictures of everyday formats."""

from __future__ import annotations

from pathlib import Path

from ..files import PNG
from ..images import SUFFIXES
from ..raw import Raw, Scratch
from ._decoded import decoded
from ._lazy import without_names
from .base import READERS, Reader

SIGNATURES = (PNG, b"\xff\xd8\xff")


@READERS.register("picture")
class Picture(Reader):
    """PNG, JPEG and BMP, grey or in colour."""

    suffixes = tuple(sorted(SUFFIXES - {".tif", ".tiff"}))
    known_by = "its first bytes"
    shape = "y, x; and colour behind them, where there are three"
    units = "brightness at the depth of the file, 8 or 16 bits as a rule"

    @classmethod
    def knows(cls, path: Path, head: bytes) -> bool:  # noqa: ARG003
        """Two letters are little for BMP; its reserved bytes are zero."""
        return head.startswith(SIGNATURES) or (head.startswith(b"BM") and head[6:10] == bytes(4))

    def read(self, path: Path, scratch: Scratch, key: str | None = None) -> Raw:
        """Decode it, to the scratch folder."""
        without_names(key)
        return decoded(path, scratch)
