"""Reading images, writing files."""

from __future__ import annotations

import io
import os
import struct
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from PIL import Image

from pnpilot.errors import BadInput
from pnpilot.io.images import image_paths, read_image
from pnpilot.io.scans import example_brain


def test_sixteen_bits_are_scaled_not_clipped(tmp_path: Path) -> None:
    ramp = np.linspace(0, 65535, 256).reshape(16, 16)
    Image.fromarray(ramp.astype(np.uint16)).save(tmp_path / "deep.png")
    Image.fromarray((ramp / 257).round().astype(np.uint8)).save(tmp_path / "flat.png")
    assert torch.equal(read_image(tmp_path / "deep.png"), read_image(tmp_path / "flat.png"))
    Image.fromarray(ramp.astype(np.float32)).save(tmp_path / "float.tif")
    with pytest.raises(BadInput, match="images of 8 or 16 bits"):
        read_image(tmp_path / "float.tif")


def test_images_are_found_below_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("c.png", "a.jpg", "b/d.png", "notes.txt"):
        Image.new("L", (4, 4)).save(tmp_path / name, format="PNG")
    assert [path.name for path in image_paths(tmp_path)] == ["a.jpg", "d.png", "c.png"]
    with pytest.raises(BadInput, match="no images in"):
        (tmp_path / "empty").mkdir()
        image_paths(tmp_path / "empty")


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, *chunks: bytes) -> bytes:
    """A grey picture with one row of pixels, whatever size it claims, and more chunks before them."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes(width + 1)))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(chunks) + pixels + chunk(b"IEND", b"")


def picture(kind: str) -> bytes:
    """A small picture in one of the formats."""
    buffer = io.BytesIO()
    Image.fromarray(np.arange(400, dtype=np.uint16).astype(np.uint8).reshape(20, 20)).save(buffer, kind)
    return buffer.getvalue()


BIG_TEXT = zlib.compress(bytes(2_000_000))
BAD_IMAGES = {
    "over our limit": (png(8193, 8192), "more than 67 million pixels"),
    "over a limit that Pillow warns of": (png(10_000, 10_000), "more than 67 million pixels"),
    "over a limit that Pillow refuses": (png(50_000, 50_000), "more than 67 million pixels"),
    "as large as can be said": (png(2**31 - 1, 1)[:60], "more than 67 million pixels"),
    "text that unpacks to megabytes": (png(8, 1, chunk(b"zTXt", b"Comment\0\0" + BIG_TEXT)), "too large"),
    "international text": (png(8, 1, chunk(b"iTXt", b"Comment\0\1\0\0\0" + BIG_TEXT)), "too large"),
    "many texts": (png(8, 1, *[chunk(b"tEXt", b"a\0" + bytes(900_000))] * 80), "text chunks"),
    "a PNG cut in the middle": (picture("PNG")[:60], "truncated"),
    "no pixels": (png(8, 0), "."),
    "a JPEG cut in the middle": (picture("JPEG")[:400], "truncated"),
    "a drawing program": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n", "cannot identify"),
    "empty": (b"", "cannot identify"),
}


@pytest.mark.parametrize("name", BAD_IMAGES)
def test_a_bad_image_is_one_line(name: str, tmp_path: Path) -> None:
    content, reason = BAD_IMAGES[name]
    (tmp_path / "bad.png").write_bytes(content)
    with pytest.raises(BadInput, match=rf"bad\.png is not a readable image: .*{reason}") as caught:
        read_image(tmp_path / "bad.png")
    assert len(str(caught.value).splitlines()) == 1


def test_what_an_image_claims_is_checked_before_its_pixels_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)  # as some programs set it
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda _: pytest.fail("read"))
    (tmp_path / "bomb.png").write_bytes(png(50_000, 50_000))
    with pytest.raises(BadInput, match="more than 67 million pixels"):
        read_image(tmp_path / "bomb.png")


def test_only_files_are_images(tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "folder.png" / "a.png").write_bytes(picture("PNG"))
    assert image_paths(tmp_path) == [tmp_path / "folder.png" / "a.png"]
    os.mkfifo(tmp_path / "pipe.png")  # nobody writes into it: reading would wait for ever
    for name in ("folder.png", "pipe.png", "missing.png"):
        with pytest.raises(BadInput, match="there is no such file"):
            read_image(tmp_path / name)


@some.composite
def damaged(draw: some.DrawFn) -> bytes:
    """Random bytes, or a picture with some bytes changed and perhaps its end missing."""
    if draw(some.booleans()):
        return draw(some.binary(max_size=200))
    data = bytearray(picture(draw(some.sampled_from(["PNG", "JPEG", "BMP", "TIFF"]))))
    for _ in range(draw(some.integers(0, 8))):
        data[draw(some.integers(0, len(data) - 1))] = draw(some.integers(0, 255))
    return bytes(data[: draw(some.integers(0, len(data)))])


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(damaged())
def test_any_bytes_are_an_image_or_bad_input(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.png"
        path.write_bytes(content)
        try:
            image = read_image(path)
        except BadInput as error:
            assert len(str(error).splitlines()) == 1
            return
        assert image.ndim == 3
        assert 0 <= image.min() <= image.max() <= 1


def test_the_example_scan_is_a_picture() -> None:
    scan = example_brain()
    assert scan.shape == (1, 1, 160, 160)
    assert scan.min() == 0
    assert scan.max() == 1
    assert 0.1 < scan.mean() < 0.5
