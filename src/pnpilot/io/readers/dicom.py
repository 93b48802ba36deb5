"""DICOM images."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BadInput, require
from ..raw import SLICE, Raw, Scratch, Stored, checked_shape
from ._dicom_groups import attributes, geometry
from ._lazy import without_names
from .base import READERS, Reader

DEFLATED = "1.2.840.10008.1.2.1.99"


@READERS.register("dicom")
class Dicom(Reader):
    """DICOM: magnitude images of one file, with one frame or many."""

    suffixes = (".dcm", ".ima")
    known_by = "DICM at byte 128, or its suffix"
    shape = "y, x; or slice, y, x"
    units = "those of its rescale slope and intercept, which are applied"
    extra = "mri"

    @classmethod
    def knows(cls, path: Path, head: bytes) -> bool:
        """Names of such files often have no suffix."""
        return head[128:132] == b"DICM" or super().knows(path, head)

    def read(self, path: Path, scratch: Scratch, key: str | None = None) -> Raw:
        """Decode one frame after the other, to the scratch folder."""
        from pydicom import dcmread
        from pydicom.filereader import read_dataset

        without_names(key)
        with warnings.catch_warnings(), _Whole(io.FileIO(path)) as file:
            warnings.simplefilter("ignore")  # about values that break the standard, and are not used
            require(file.read(132)[128:] == b"DICM", "it does not begin like a DICOM file (DICM at byte 128)")
            meta = read_dataset(file, False, True, stop_when=lambda tag, *_: tag >> 16 != 2)
            # pydicom would inflate such a file at once, whatever its size.
            require(meta.get("TransferSyntaxUID") != DEFLATED, "it is deflated as a whole; inflate it first")
            file.seek(0)
            dataset = dcmread(file, stop_before_pixels=True)
            stored = file.size - file.tell()
            require(stored > 0, "it holds no pixels")
            pixels = _pixels(file, dataset, stored, scratch)
            place = geometry(dataset, pixels.shape)
        one = len(pixels) == 1
        measured = Stored(pixels[0], ("y", "x")) if one else Stored(pixels, (SLICE, "y", "x"))
        raw = Raw(measured, "dicom", pictures=True, geometry=place, header=dataset)
        if place is None:
            raw.notes.append("where its pixels lie in space is not told, or its frames are not slices in equal steps")
        return raw


class _Whole(io.BufferedReader):
    """A file of which no more can be asked for than there is: lengths in damaged files are not believed."""

    def __init__(self, raw: io.FileIO) -> None:
        super().__init__(raw)
        self.size = self.seek(0, io.SEEK_END)
        self.seek(0)

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(0, self.size - self.tell())
        return super().read(left if size is None or size < 0 else min(size, left))


def _pixels(file: _Whole, dataset: Any, stored: int, scratch: Scratch) -> np.ndarray:
    """All frames (frame, y, x), as what they mean."""
    from pydicom.pixels import iter_pixels

    shape, bits = _claims(dataset, stored)
    kind = str(dataset.get("PhotometricInterpretation"))
    grey = kind in ("MONOCHROME1", "MONOCHROME2") and int(dataset.get("SamplesPerPixel") or 1) == 1
    require(grey, f"its pixels are {kind}; shades of grey (MONOCHROME1, MONOCHROME2) are accepted")
    used = int(dataset.get("BitsStored") or bits)
    require(0 < used <= bits, f"its header says that {used} bits of {bits} are used")
    darkest_and_brightest = -1 if int(dataset.get("PixelRepresentation") or 0) else 2**used - 1
    pixels, count = scratch.array(shape, np.float32), 0
    for count, frame in enumerate(iter_pixels(file, raw=True), 1):
        require(count <= shape[0] and frame.shape == shape[1:], f"frame {count} is not what its header says")
        scale = attributes(dataset, count - 1, "PixelValueTransformationSequence")
        slope, intercept = scale.get("RescaleSlope"), scale.get("RescaleIntercept")
        values = frame.astype(np.float64)
        values = darkest_and_brightest - values if kind == "MONOCHROME1" else values
        with np.errstate(all="ignore"):  # what overflows is infinite, and is told where images are checked
            pixels[count - 1] = values * float(1 if slope is None else slope) + float(intercept or 0)
    require(count == shape[0], f"it holds {count} frames, its header says {shape[0]}")
    return pixels


def _claims(dataset: Any, stored: int) -> tuple[tuple[int, int, int], int]:
    """The shape and the bits of a pixel, refused if the file cannot hold them, or nothing here unpacks them."""
    from pydicom.pixels import get_decoder

    syntax = dataset.file_meta.get("TransferSyntaxUID")
    require(syntax is not None, "it does not say how its pixels are stored (transfer syntax)")
    try:
        decoder = get_decoder(syntax)
    except NotImplementedError as error:
        raise BadInput(f"its pixels are packed as {syntax.name}, which pydicom does not read") from error
    require(decoder.is_available, f"nothing installed unpacks {syntax.name}: pip install pylibjpeg[all]")
    frames, rows, columns, bits = (
        int(dataset.get(name) or default)
        for name, default in (("NumberOfFrames", 1), ("Rows", 0), ("Columns", 0), ("BitsAllocated", 0))
    )
    require(bits in (1, 8, 16, 32), f"its pixels have {bits} bits; 1, 8, 16 or 32 are read")
    shape = (frames, rows, columns)
    checked_shape(shape, np.dtype(np.uint8 if bits == 1 else f"u{bits // 8}"), stored, "its image")
    needed = frames * rows * columns * bits // 8
    require(
        syntax.is_compressed or needed <= stored, f"its header asks for {needed} bytes of pixels, {stored} are there"
    )
    return shape, bits
