"""Reading images, writing files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from pnpilot.errors import BadInput
from pnpilot.io.files import write_atomically
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


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "result"
    write_atomically(file, b"old")

    def broken(self: Path, target: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_the_example_scan_is_a_picture() -> None:
    scan = example_brain()
    assert scan.shape == (1, 1, 96, 128)
    assert scan.min() == 0
    assert scan.max() == 1
    assert 0.1 < scan.mean() < 0.5
