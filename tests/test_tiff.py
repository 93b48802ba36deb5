"""TIFF as tifffile writes it for microscopes and cameras, and pictures written at the depth that they had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pnpilot.errors import BadInput
from pnpilot.io.raw import Raw, Scratch
from pnpilot.io.readers import open_raw
from pnpilot.io.writers import Volume, save
from pnpilot.recon.grey import grey
from pnpilot.recon.simulate import simulated

tifffile = pytest.importorskip("tifffile")
DEEP = np.random.default_rng(0).integers(0, 65536, (5, 16, 18, 3)).astype(np.uint16)
STACK, COLOURS = DEEP[..., 0], {"photometric": "rgb"}
WRITTEN: dict[str, tuple[np.ndarray, dict[str, Any], tuple[str, ...]]] = {
    "colour": (DEEP[0], COLOURS, ("y", "x", "colour")),
    "planes": (
        np.moveaxis(DEEP[0], -1, 0).copy(),
        {**COLOURS, "planarconfig": "separate"},
        ("colour", "y", "x"),
    ),
    "stack": (STACK, {}, ("slice", "y", "x")),
    "coloured stack": (DEEP, COLOURS, ("slice", "y", "x", "colour")),
    "ImageJ": (STACK[:, None], {"imagej": True, "metadata": {"axes": "ZCYX"}}, ("slice", "y", "x")),
    "OME": (np.stack([STACK, STACK]), {"ome": True, "metadata": {"axes": "CZYX"}}, ("channel", "slice", "y", "x")),
    "packed": (DEEP[0], {**COLOURS, "compression": "zlib"}, ("y", "x", "colour")),
    "tiles": (STACK, {"tile": (16, 16), "photometric": "minisblack"}, ("slice", "y", "x")),
    "the other way round": (STACK[0], {"byteorder": ">"}, ("y", "x")),
    "large": (STACK, {"bigtiff": True}, ("slice", "y", "x")),
    "floats": (STACK[0] / 7.0, {}, ("y", "x")),
}


def opened(folder: Path, array: np.ndarray, **how: Any) -> Raw:
    tifffile.imwrite(folder / "a.tif", array, **how)
    return open_raw(folder / "a.tif", Scratch(folder / "scratch"))


@pytest.mark.parametrize("name", WRITTEN)
def test_what_a_microscope_writes_is_read(name: str, tmp_path: Path) -> None:
    array, how, axes = WRITTEN[name]
    raw = opened(tmp_path, array, **how)
    assert raw.measured is not None and raw.pictures and raw.family == "tiff"
    assert raw.measured.axes == axes
    found = np.asarray(raw.measured.data[:])
    assert found.dtype.newbyteorder("=") == array.dtype and np.array_equal(found, array.squeeze())


def test_pictures_that_tifffile_does_not_unpack_are_for_pillow(tmp_path: Path) -> None:
    white = (STACK[0] >> 8).astype(np.uint8)
    raw = opened(tmp_path, white, photometric="miniswhite")
    assert raw.measured is not None and np.array_equal(raw.measured.data[:], 255 - white)
    Image.fromarray(white).save(tmp_path / "b.tif", compression="tiff_lzw")
    raw = open_raw(tmp_path / "b.tif", Scratch(tmp_path))
    assert raw.measured is not None and np.array_equal(raw.measured.data[:], white)


def test_transparency_is_left_out_and_told(tmp_path: Path) -> None:
    four = np.concatenate([DEEP[0], DEEP[0, ..., :1]], -1)
    raw = opened(tmp_path, four, photometric="rgb", extrasamples=["unassalpha"])
    assert raw.measured is not None and np.array_equal(raw.measured.data[:], DEEP[0])
    assert raw.notes == ["its transparency was left out"]
    Image.fromarray((four >> 8).astype(np.uint8)).save(tmp_path / "a.png")
    raw = open_raw(tmp_path / "a.png", Scratch(tmp_path))
    assert raw.measured is not None and np.array_equal(raw.measured.data[:], DEEP[0] >> 8)
    assert raw.notes == ["its transparency was left out"]


def test_pages_that_differ_are_chosen_by_number(tmp_path: Path) -> None:
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(STACK[0], photometric="minisblack")
        file.write(STACK[1, :9], photometric="minisblack")
    with pytest.raises(BadInput, match=r"--key 0 and so on \(0: YX 16×18; 1: YX 9×18\)"):
        open_raw(tmp_path / "a.tif", Scratch(tmp_path))
    raw = open_raw(tmp_path / "a.tif", Scratch(tmp_path), "1")
    assert raw.measured is not None and np.array_equal(raw.measured.data[:], STACK[1, :9])
    with pytest.raises(BadInput, match="by its number"):
        open_raw(tmp_path / "a.tif", Scratch(tmp_path), "2")


def test_a_file_that_is_cut_short_is_told(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.tif", STACK)
    (tmp_path / "b.tif").write_bytes((tmp_path / "a.tif").read_bytes()[:2000])
    with pytest.raises(BadInput, match="cut short: its pixels take 2880 bytes"):
        open_raw(tmp_path / "b.tif", Scratch(tmp_path))


@pytest.mark.parametrize("colours", [False, True])
@pytest.mark.parametrize("kind", ["uint8", "uint16", "float32"])
def test_results_have_the_depth_of_the_pictures(kind: str, colours: bool, tmp_path: Path) -> None:
    numbers = np.array([-3.2, 0.4, 200.6, 7e4]).repeat(12)[:, None] * np.ones(6)
    image = (np.stack([numbers] * 3) if colours else numbers).astype(np.complex64)
    header = {"resolution": (10.0, 10.0), "resolutionunit": 3}
    volume = Volume(
        (2, 3, 48, 6),
        ("time", "slice", "y", "x"),
        lambda _: image,
        header=header,
        colours=colours,
        pixels=np.dtype(kind),
    )
    (path,) = save("tiff", tmp_path, "a", volume)
    raw = open_raw(path, Scratch(tmp_path))
    assert raw.measured is not None and raw.header == header
    assert raw.measured.axes == ("time", "slice", "y", "x", *(["colour"] * colours))
    found = np.asarray(raw.measured.data[1, 2])
    found = found[..., 0] if colours else found
    assert found.dtype == kind
    most = {"uint8": 255, "uint16": 65535, "float32": np.inf}[kind]
    expected = numbers if kind == "float32" else numbers.round().clip(0, most)
    assert np.allclose(found, expected)
    if kind == "uint8":
        (made,) = save("png", tmp_path, "a", volume)
        with Image.open(made / "0003.png") as file:
            shown = np.asarray(file)
        assert np.array_equal(shown[..., 0] if colours else shown, expected), "8 bits are not scaled"


def test_what_knows_no_colours_sees_shades_of_grey(tmp_path: Path) -> None:
    raw = opened(tmp_path, DEEP, photometric="rgb")
    assert raw.measured is not None
    expected = DEEP @ [0.299, 0.587, 0.114]
    found = grey(raw.measured)
    assert found.axes == ("slice", "y", "x") and found.data.shape == (5, 16, 18)
    for index in ((), (2,), (slice(1, 3), 4), (1, slice(None), 3), (slice(None),) * 3):
        assert np.allclose(found.data[index], expected[index], rtol=1e-5)
    again, _ = simulated(raw, "radial x2", 0)
    assert again.notes == ["its colours were turned to shades of grey"]
    assert again.measured is not None and again.measured.axes == ("slice", "y", "x")
