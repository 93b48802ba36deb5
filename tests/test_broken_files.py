"""Broken files, and files that claim more than they hold: each is refused in one line, before much is allocated."""

from __future__ import annotations

import gzip
import io
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pnpilot.errors import BadInput
from pnpilot.io.raw import Scratch
from pnpilot.io.readers import open_raw

nibabel, pydicom = pytest.importorskip("nibabel"), pytest.importorskip("pydicom")
FILES = Path(__file__).parent / "files"
KSPACE = np.ones((3, 4, 10, 8), np.complex64)


def _changed(name: str, change: Callable[[Any], object]) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        dataset = pydicom.dcmread(FILES / name)
        change(dataset)
        dataset.save_as(path)

    return make


def _written(content: bytes | Callable[[], bytes]) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content() if callable(content) else content)


def _pair(header: str, size: int) -> Callable[[Path], object]:
    return lambda path: (path.write_bytes(bytes(size)), path.with_suffix(".hdr").write_text(header))


def _cut(name: str, size: int) -> Callable[[Path], object]:
    return _written(lambda: (FILES / name).read_bytes()[:size])


def _flipped(name: str, at: int) -> Callable[[Path], object]:
    content = bytearray((FILES / name).read_bytes())
    content[at] ^= 255
    return _written(bytes(content))


def _npy(array: np.ndarray, shape: tuple[int, ...] | None = None, pickled: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=pickled)
    if shape is None:
        return file.getvalue()
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": shape}
    )
    return header.getvalue() + array.tobytes()


def _npz(member: bytes, packing: int = zipfile.ZIP_DEFLATED, claimed: int | None = None) -> bytes:
    """An archive with one member, which claims another size than it has if asked."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as archive:
        archive.writestr("kspace.npy", member)
    content = file.getvalue()
    if claimed is not None:
        at = content.rindex(b"PK\x01\x02") + 24
        content = content[:at] + struct.pack("<I", claimed) + content[at + 4 :]
    return content


def _nifti(shape: tuple[int, ...], dtype: Any, offset: int = 352) -> bytes:
    header = nibabel.Nifti1Header()
    header.set_data_dtype(dtype)
    header["dim"][: len(shape) + 1] = (len(shape), *shape)
    header["vox_offset"], header["magic"] = offset, b"n+1"
    return header.binaryblock + bytes(4 + 512)


def _bomb(dataset: Any) -> None:
    dataset.Rows = dataset.Columns = 65535
    dataset.NumberOfFrames = 9999999


def _png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b"")
    )


def _tiff(width: int, height: int) -> bytes:
    tags = ((256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, height), (279, 99))
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(tags)) + entries + bytes(4)


def _pages(path: Path) -> None:
    first, second = Image.new("L", (8, 8)), Image.new("L", (9, 8))
    first.save(path, "TIFF", save_all=True, append_images=[second])


NPY_BOMB = (2**20, 2**20, 2**20)
BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty.npy": (_written(b""), "it is empty"),
    "noise.npy": (_written(b"nothing of this kind"), "it is a numpy file, but it does not begin"),
    "noise.xyz": (_written(b"nothing of this kind"), "no reader knows it"),
    "cut.npy": (_cut("complex.npy", 4000), "cut short: its header asks for 7680 bytes, 3872 are there"),
    "head.npy": (_cut("complex.npy", 50), "its header is damaged"),
    "objects.npy": (_written(_npy(np.array([{}, print], object), pickled=True)), "objects, which could run any code"),
    "text.npy": (_written(_npy(np.array([["a", "b"]]))), "k-space is complex"),
    "large.npy": (_written(_npy(np.zeros(9, np.complex64), NPY_BOMB)), "its array claims"),
    "many.npy": (_written(_npy(np.zeros((2, 3, 4, 5)))), "pictures have two axes or three"),
    "none.npy": (_written(_npy(np.zeros((0, 3, 4)))), "is empty"),
    "cut.npz": (_cut("packed.npz", 3000), "cannot be read"),
    "objects.npz": (_written(_npz(_npy(np.array([{}], object), pickled=True))), "objects, which could run"),
    "bomb.npz": (_written(_npz(_npy(np.zeros(9, np.complex64), NPY_BOMB))), "its array claims"),
    "bomb2.npz": (
        _written(_npz(_npy(np.zeros(9), (400,)), claimed=2**31)),
        "asks for 3200 bytes, it unpacks to 214748",
    ),
    "cut2.npz": (_written(_npz(_npy(np.zeros(9), (9, 9)), claimed=128 + 648)), "cut short: it unpacks to 72 bytes"),
    "lzma.npz": (_written(_npz(_npy(KSPACE), zipfile.ZIP_LZMA)), "a way that NumPy does not use"),
    "cut.cfl": (_pair("# Dimensions\n5 6 7", 8), "asks for 1680 bytes, cut.cfl has 8"),
    "lone.cfl": (_written(b"12345678"), "not a readable pair of BART files"),
    "large.hdr": (_written(b"# Dimensions\n99999 99999 99999"), "not a readable pair"),
    "large.cfl": (_pair("# Dimensions\n99999 9999 999", 8), "its header asks for"),
    "cut.nii": (_cut("volume.nii", 500), "cut short: its header asks for 832 bytes, it has 500"),
    "head.nii": (_cut("volume.nii", 347), "it is a nifti file, but"),
    "short.nii": (_cut("volume.nii", 350), "cut short"),
    "cut.nii.gz": (_cut("series.nii.gz", 600), "cannot be read: Compressed file ended"),
    "bomb.nii.gz": (_written(gzip.compress(_nifti((30000, 30000, 3000), np.float64))), "its image claims"),
    "sum.nii.gz": (_flipped("series.nii.gz", -6), "CRC check failed"),
    "sum.npz": (_flipped("packed.npz", 120), "cannot be read"),
    "small.nii.gz": (_written(gzip.compress(_nifti((30, 30), np.float64))), "it unpacks to 512 bytes of numbers"),
    "before.nii": (_written(_nifti((9, 9), np.int16, 30)), "vox offset 30 too low"),
    "complex.nii": (_written(_nifti((9, 9), np.complex64)), "it holds complex numbers; NIfTI is read as magnitude"),
    "colour.nii": (_written(_nifti((9, 9), "RGB")), "it holds colours"),
    "line.nii": (_written(_nifti((9,), np.int16)), "two axes at least"),
    "noise.dcm": (_written(b"nothing of this kind"), "DICM at byte 128"),
    "cut.dcm": (_cut("one.dcm", 720), "its header asks for 80 bytes of pixels, [0-9]+ are there"),
    "head.dcm": (_cut("one.dcm", 200), "it holds no pixels|cannot be read"),
    "none.dcm": (_changed("one.dcm", lambda dataset: delattr(dataset, "PixelData")), "it holds no pixels"),
    "large.dcm": (_changed("one.dcm", _bomb), "its image claims"),
    "wide.dcm": (_changed("one.dcm", lambda dataset: setattr(dataset, "Rows", 300)), "asks for 2400 bytes of pixels"),
    "rgb.dcm": (_changed("one.dcm", lambda ds: setattr(ds, "PhotometricInterpretation", "RGB")), "its pixels are RGB"),
    "fewer.dcm": (_changed("many.dcm", lambda ds: setattr(ds, "NumberOfFrames", 5)), "frame"),
    "film.dcm": (
        _changed("many.dcm", lambda ds: setattr(ds.file_meta, "TransferSyntaxUID", pydicom.uid.MPEG2MPML)),
        "MPEG2.* which pydicom does not read",
    ),
    "strange.dcm": (
        _written((FILES / "one.dcm").read_bytes().replace(b"MONOCHROME2", b"TWO\nLINES\x1b[")),
        r"pixels are TWO\?LINES\?\[; shades of grey",
    ),
    "deflated.dcm": (
        _changed(
            "one.dcm",
            lambda ds: setattr(ds.file_meta, "TransferSyntaxUID", pydicom.uid.DeflatedExplicitVRLittleEndian),
        ),
        "it is deflated",
    ),
    "cut.png": (_cut("grey.png", 60), "not a readable image"),
    "large.png": (_written(_png(60000, 60000)), "million pixels"),
    "claim.png": (_written(_png(8000, 8000)), "its picture claims"),
    "large.tif": (_written(_tiff(60000, 60000)), "million pixels"),
    "claim.tif": (_written(_tiff(8000, 8000)), "its picture claims"),
    "pages.tif": (_pages, r"pages differ in size or depth, .* --key .*YX 8×9"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_told_in_a_line(name: str, tmp_path: Path) -> None:
    make, told = BROKEN[name]
    path = tmp_path / name
    make(path)
    open_raw(FILES / "one.dcm", Scratch(tmp_path / "before"))  # so that no import is counted
    tracemalloc.start()
    try:
        with pytest.raises(BadInput, match=told) as caught:
            open_raw(path, Scratch(tmp_path / "scratch"))
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_missing_codecs_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pydicom.pixels.decoders.base import Decoder

    monkeypatch.setattr(Decoder, "is_available", property(lambda _: False))
    with pytest.raises(BadInput, match="nothing installed unpacks RLE Lossless: pip install"):
        open_raw(FILES / "many.dcm", Scratch(tmp_path))
