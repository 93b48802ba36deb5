"""Readers of files from other programs: what they find, and how they refuse what is broken."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pnpilot.errors import BadInput
from pnpilot.io.cfl import write_cfl
from pnpilot.io.raw import Raw, Scratch
from pnpilot.io.readers import READERS, open_raw
from pnpilot.io.readers.base import HEAD

nibabel, pydicom = pytest.importorskip("nibabel"), pytest.importorskip("pydicom")
FILES = Path(__file__).parent / "files"
PLAIN, PICTURE, PICTURES = ("slice", "coil", "y", "x"), ("y", "x"), ("slice", "y", "x")
COLOURED = ("y", "x", "colour")
READ: dict[str, tuple[str, tuple[str, ...] | None, bool]] = {
    "bart_kspace.cfl": ("bart", ("x", "y", "coil"), False),
    "bart_kspace.hdr": ("bart", ("x", "y", "coil"), False),
    "bart_maps.cfl": ("bart", ("x", "y", "coil", "set"), False),
    "complex.npy": ("numpy", None, False),
    "fortran.npy": ("numpy", None, False),
    "pairs.npy": ("numpy", None, False),
    "pictures.npy": ("numpy", None, True),
    "plain.npz": ("numpy", PLAIN, False),
    "packed.npz": ("numpy", None, False),
    "volume.nii": ("nifti", ("x", "y", "slice"), True),
    "series.nii.gz": ("nifti", ("x", "y", "slice", "vector"), True),
    "flat.nii": ("nifti", ("x", "y"), True),
    "one.dcm": ("dicom", PICTURE, True),
    "negative.dcm": ("dicom", PICTURE, True),
    "many.dcm": ("dicom", PICTURES, True),
    "grey.png": ("picture", PICTURE, True),
    "deep.png": ("picture", PICTURE, True),
    "grey.bmp": ("picture", PICTURE, True),
    "colour.jpg": ("picture", COLOURED, True),
    "pages.tif": ("tiff", PICTURES, True),
    "float.tif": ("tiff", PICTURE, True),
    "colours.tif": ("tiff", COLOURED, True),
    "stack.ome.tif": ("tiff", ("channel", *PICTURES), True),
}
"""The reader, the axes, and whether they are pictures, of files that `files/make_others.py` made."""


def pattern(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape)).reshape(shape) * 7 % 251).astype(np.uint8)


KSPACE = (pattern(3, 4, 10, 8) - 1j * pattern(3, 4, 10, 8)[::-1]).astype(np.complex64)
HELD: dict[str, np.ndarray] = {
    "complex.npy": KSPACE,
    "fortran.npy": KSPACE[0],
    "pairs.npy": np.stack([KSPACE.real, KSPACE.imag], -1),
    "pictures.npy": pattern(3, 10, 8),
    "plain.npz": KSPACE,
    "packed.npz": KSPACE,
    "volume.nii": 0.5 * pattern(10, 8, 3) + 3,
    "series.nii.gz": pattern(10, 8, 3, 2),
    "flat.nii": pattern(10, 8),
    "one.dcm": 0.5 * pattern(10, 8) + 3,
    "negative.dcm": pattern(10, 8),
    "many.dcm": pattern(3, 10, 8) * np.arange(1.0, 4).reshape(3, 1, 1),
    "grey.png": pattern(10, 8),
    "deep.png": pattern(3, 10, 8)[0].astype(np.uint16) * 256,
    "grey.bmp": pattern(10, 8),
    "colour.jpg": np.full((10, 8, 3), 100),
    "pages.tif": pattern(3, 10, 8).astype(np.uint16) * 256,
    "float.tif": pattern(10, 8) / 4,
    "colours.tif": pattern(10, 8, 3).astype(np.uint16) * 257,
    "stack.ome.tif": pattern(2, 3, 10, 8),
}


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path / "scratch")


def opened(name: str, scratch: Scratch, key: str | None = None) -> tuple[Raw, np.ndarray]:
    raw = open_raw(FILES / name, scratch, key)
    assert raw.measured is not None
    return raw, np.asarray(raw.measured.data[:])


@pytest.mark.parametrize("name", READ)
def test_what_a_file_is(name: str, scratch: Scratch) -> None:
    reader, axes, pictures = READ[name]
    with (FILES / name).open("rb") as file:
        head = file.read(HEAD)
    assert [other for other in READERS if READERS[other].knows(FILES / name, head)] == [reader]
    raw, _ = opened(name, scratch)
    assert raw.measured is not None
    assert (raw.measured.axes, raw.pictures) == (axes, pictures)
    assert raw.family == ("tiff" if name == "deep.png" else {"picture": "png"}.get(reader, reader))


@pytest.mark.parametrize("name", HELD)
def test_what_a_file_holds(name: str, scratch: Scratch) -> None:
    raw, array = opened(name, scratch)
    assert raw.measured is not None
    assert np.array_equal(array, HELD[name])
    assert array.dtype == raw.measured.data.dtype
    assert np.array_equal(raw.measured.data[1:3, 0], HELD[name][1:3, 0])


@pytest.mark.parametrize("name", ["grey.png", "one.dcm", "complex.npy", "plain.npz", "volume.nii", "series.nii.gz"])
def test_content_counts_more_than_a_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.tif"
    path.write_bytes((FILES / name).read_bytes())
    assert open_raw(path, Scratch(tmp_path / "scratch")).pictures == READ[name][2]


@pytest.mark.parametrize("name", sorted(READERS))
@settings(max_examples=30, deadline=None)
@given(head=st.binary(max_size=700), stem=st.text(max_size=8))
def test_every_reader_says_what_it_is_and_may_be_asked_anything(name: str, head: bytes, stem: str) -> None:
    reader = READERS[name]
    assert READERS.summary(name).endswith(".")
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in reader.suffixes)
    assert reader.suffixes and reader.known_by and reader.shape and reader.units
    for content in (head, b"\x1f\x8b\x08" + head, b"PK\x03\x04" + head, b""):
        for path in (
            Path(),
            Path(f"nowhere/{stem.replace(chr(0), '')}"),
            *(Path("a" + end) for end in reader.suffixes),
        ):
            assert reader.knows(path, content) in (True, False)


def test_barts_k_space_and_maps_agree(scratch: Scratch) -> None:
    """Coil images are nearly the maps times an image, if both were understood alike."""
    (_, kspace), (_, maps) = opened("bart_kspace", scratch), opened("bart_maps.hdr", scratch)
    plane = (0, 1)
    coils = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(kspace, plane), axes=plane), plane)
    image = (maps[..., 0].conj() * coils).sum(2)
    rest = coils - maps[..., 0] * image[..., None]
    assert np.linalg.norm(rest) < 0.1 * np.linalg.norm(coils)
    assert abs(image[10, 10]) > 3 * abs(image[0, 0])


@pytest.mark.parametrize(
    ("sizes", "axes", "shape"),
    [
        ((6, 5, 4, 3), ("x", "y", "z", "coil"), (6, 5, 4, 3)),
        ((1, 6, 5, 3), ("y", "x", "coil"), (6, 5, 3)),
        ((6, 1, 5, 3), ("x", "y", "coil"), (6, 5, 3)),
        ((6,), ("x", "y"), (6, 1)),
        ((1, 1, 5), ("x", "y"), (1, 5)),
        ((6, 5, 1, 1, 1, 2, *[1] * 4, 3, 1, 1, 4), ("x", "y", "echo", "time", "slice"), (6, 5, 2, 3, 4)),
        ((6, 5, *[1] * 12, 2, 3), ("x", "y", "average", "batch"), (6, 5, 2, 3)),
    ],
)
def test_barts_axes(sizes: tuple[int, ...], axes: tuple[str, ...], shape: tuple[int, ...], tmp_path: Path) -> None:
    array = np.arange(np.prod(sizes)).reshape(sizes).astype(np.complex64)
    write_cfl(tmp_path / "scan", array)
    measured = open_raw(tmp_path / "scan", Scratch(tmp_path)).measured
    assert measured is not None and measured.axes == axes
    assert np.array_equal(measured.data[:], array.reshape(shape))


def test_what_else_an_archive_holds(scratch: Scratch) -> None:
    for name in ("plain.npz", "packed.npz"):
        raw, _ = opened(name, scratch)
        assert raw.maps is not None and raw.mask is not None
        assert np.array_equal(raw.maps.data[:], KSPACE[:, :, ::-1])
        assert np.array_equal(raw.mask.data[:], pattern(10, 8) % 2 == 0)
    assert np.array_equal(opened("packed.npz", scratch, "maps")[1], KSPACE[:, :, ::-1])
    with pytest.raises(BadInput, match="no array 'other'; it has 'kspace', 'maps', 'mask'"):
        opened("plain.npz", scratch, "other")
    with pytest.raises(BadInput, match="which has no name"):
        opened("complex.npy", scratch, "kspace")


def test_the_only_complex_array_of_an_archive(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", mine=KSPACE, times=np.arange(3))
    raw = open_raw(tmp_path / "one.npz", Scratch(tmp_path))
    assert raw.measured is not None and raw.measured.data.shape == KSPACE.shape
    np.savez(tmp_path / "two.npz", mine=KSPACE, yours=KSPACE)
    with pytest.raises(BadInput, match="which of its arrays is k-space"):
        open_raw(tmp_path / "two.npz", Scratch(tmp_path))


def test_where_pixels_lie(scratch: Scratch) -> None:
    volume = opened("volume.nii", scratch)[0].geometry
    assert volume is not None
    assert np.allclose(volume.affine(("x", "y", "slice"), (10, 8, 3)), nibabel.load(FILES / "volume.nii").affine)
    one, many = opened("one.dcm", scratch)[0].geometry, opened("many.dcm", scratch)[0].geometry
    assert one is not None and many is not None
    # The first pixel is at (-20, 10, 30) to the left and the back; a coronal image, from head to foot.
    expected: list[list[float]] = [[-2, 0, 0, 20], [0, 0, -4, -10], [0, -1.5, 0, 30], [0, 0, 0, 1]]
    assert np.allclose(one.affine(("x", "y", "slice"), (8, 10, 1)), expected)
    expected = [[-2, 0, 0, 20], [0, -1.5, 0, -10], [0, 0, 4, 30], [0, 0, 0, 1]]
    assert np.allclose(many.affine(("x", "y", "slice"), (8, 10, 3)), expected)


@pytest.mark.parametrize("kind", [nibabel.Nifti1Image, nibabel.Nifti2Image])
@pytest.mark.parametrize(("unit", "millimetres"), [("mm", 1), ("unknown", 1), ("meter", 1000), ("micron", 0.001)])
@pytest.mark.parametrize("coded", [True, False])
def test_lengths_are_millimetres(kind: type, unit: str, millimetres: float, coded: bool, tmp_path: Path) -> None:
    affine = np.array([[0, 3, 0, 7], [-2, 0, 0, 8], [0, 0, 5, 9], [0, 0, 0, 1]], float)
    image = kind(np.zeros((6, 5, 4), np.uint8), affine if coded else None)
    image.header.set_zooms((2, 3, 5))
    image.header.set_xyzt_units(unit, "msec")
    nibabel.save(image, tmp_path / "scan.nii")
    expected = image.header.get_best_affine()
    expected[:3] *= millimetres
    raw = open_raw(tmp_path / "scan.nii", Scratch(tmp_path))
    assert raw.geometry is not None
    assert np.allclose(raw.geometry.affine(("x", "y", "slice"), (6, 5, 4)), expected)
    # The header says the same, so that what is written with it does.
    assert raw.header.get_xyzt_units() == ("unknown" if unit == "unknown" else "mm", "msec")
    assert np.allclose(raw.header.get_best_affine(), expected)
    assert np.allclose(raw.header.get_zooms(), np.array([2, 3, 5]) * millimetres)
    assert raw.header["sform_code"] == image.header["sform_code"]


def test_units_that_mean_nothing_are_taken_for_millimetres(tmp_path: Path) -> None:
    content = bytearray((FILES / "volume.nii").read_bytes())
    content[123] = 7
    (tmp_path / "scan.nii").write_bytes(content)
    geometry = open_raw(tmp_path / "scan.nii", Scratch(tmp_path)).geometry
    assert geometry is not None and geometry.spacing("y") == pytest.approx(1.5, rel=0.5)


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("one.dcm", "pydicom"),
        ("volume.nii", "nibabel"),
        ("matlab_5.mat", "scipy.io"),
        ("matlab_73.mat", "h5py"),
        ("mrd_slices.h5", "ismrmrd.xsd"),
        ("mrd_slices.h5", "h5py"),
        ("fastmri_multi.h5", "ismrmrd.xsd"),
    ],
)
def test_a_missing_library_is_named(name: str, library: str, scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pnpilot.io.readers._trial.tried", lambda *_: None)  # there the library is not missing
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(BadInput) as caught:
        open_raw(FILES / name, scratch)
    assert str(caught.value) == f"{FILES / name}: {library} is needed: pip install 'pnpilot[mri]'"


def test_names_of_axes_that_cannot_be_are_told(tmp_path: Path) -> None:
    for axes, told in ((["y", "x"], "2 names for the axes"), (["coil", "slice", "y", "y"], "names one twice")):
        np.savez(tmp_path / "scan.npz", kspace=KSPACE, axes=axes)
        with pytest.raises(BadInput, match=told):
            open_raw(tmp_path / "scan.npz", Scratch(tmp_path))


def test_slices_in_unequal_steps_have_no_place(tmp_path: Path) -> None:
    dataset = pydicom.dcmread(FILES / "many.dcm")
    dataset.PerFrameFunctionalGroupsSequence[1].PlanePositionSequence[0].ImagePositionPatient = [-20, 10, 33]
    dataset.save_as(tmp_path / "many.dcm")
    raw = open_raw(tmp_path / "many.dcm", Scratch(tmp_path))
    assert raw.geometry is None and "equal steps" in raw.notes[0]


def test_headers_come_along(scratch: Scratch) -> None:
    header = opened("one.dcm", scratch)[0].header
    assert header.Modality == "MR" and "PixelData" not in header
    assert header.PixelSpacing == [1.5, 2]
    assert opened("volume.nii", scratch)[0].header["pixdim"][3] == pytest.approx(np.hypot(0.1, 4))


def test_folders_and_missing_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="it is a folder"):
        open_raw(tmp_path, Scratch(tmp_path))
    with pytest.raises(BadInput, match="there is no such file"):
        open_raw(tmp_path / "nothing.npy", Scratch(tmp_path))
