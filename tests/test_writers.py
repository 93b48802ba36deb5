"""Writers: each format is read back by its own library."""

from __future__ import annotations

import errno
import math
import shutil
import subprocess
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pnpilot.errors import BadInput, CannotWrite
from pnpilot.io.cfl import read_cfl
from pnpilot.io.geometry import Geometry
from pnpilot.io.writers import WRITERS, Volume, save
from pnpilot.io.writers.bart import bart_places
from pnpilot.io.writers.png import brightest

h5py, nibabel = pytest.importorskip("h5py"), pytest.importorskip("nibabel")
tifffile = pytest.importorskip("tifffile")
pydicom, matlab = pytest.importorskip("pydicom"), pytest.importorskip("scipy.io")
needs_bart = pytest.mark.skipif(shutil.which("bart") is None, reason="BART is not installed: apt-get install bart")
SCALE = 1e-4
"""Numbers of k-space are small in many files."""


class Images:
    """Random images that count how often they are asked for, and how many of them are held at once."""

    def __init__(self, *shape: int) -> None:
        parts = np.random.default_rng(0).normal(scale=SCALE, size=(2, *shape))
        self.array = (parts[0] + 1j * parts[1]).astype(np.complex64)
        self.calls, self.most, self.given = 0, 0, list[weakref.ref]()

    def __call__(self, number: int) -> np.ndarray:
        self.given = [image for image in self.given if image() is not None]
        self.most = max(self.most, len(self.given) + 1)
        self.calls += 1
        image = self.array.reshape(-1, *self.array.shape[-2:])[number].copy()
        self.given.append(weakref.ref(image))
        return image


def oblique(seed: int = 0, **sizes: float) -> Geometry:
    """Axes at right angles that point anywhere."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(3, 3)))[0].T
    sizes = sizes or {"y": 1.5, "x": 0.7, "slice": 4.0}
    steps = {axis: size * direction for (axis, size), direction in zip(sizes.items(), directions, strict=True)}
    return Geometry(steps, rng.normal(scale=40, size=3))


def many(**changes: Any) -> Volume:
    volume = Volume((2, 3, 5, 7), ("contrast", "slice", "y", "x"), Images(2, 3, 5, 7), oblique(), about="tried σ")
    return replace(volume, **changes)


def single(**changes: Any) -> Volume:
    return replace(Volume((5, 7), ("y", "x"), Images(5, 7)), **changes)


def unreadable(number: int) -> np.ndarray:
    raise AssertionError("no image is read before a volume is refused")


def numbers_of(volume: Volume) -> np.ndarray:
    assert isinstance(volume.image, Images)
    return volume.image.array


def files_of(paths: list[Path]) -> list[Path]:
    return [file for path in paths for file in (sorted(path.iterdir()) if path.is_dir() else [path])]


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# How each format's own library reads a file: images in the order (contrast, slice, y, x).


def from_bart(files: list[Path], shape: tuple[int, ...]) -> np.ndarray:
    array = read_cfl(files[0])
    assert array.ndim == 16
    order = (5, 13, 1, 2)
    assert math.prod(array.shape[axis] for axis in order) == array.size
    return array.transpose([*(axis for axis in range(16) if axis not in order), *order]).reshape(shape)


def from_hdf5(files: list[Path], shape: tuple[int, ...]) -> np.ndarray:
    with h5py.File(files[0]) as file:
        image = file["image"][()]
        assert file["reconstruction"].dtype == np.float32
        assert np.array_equal(file["reconstruction"], np.abs(image))
        assert len(file["image"].attrs["axes"]) == image.ndim > 2
        return image.reshape(shape)


def images_first(array: np.ndarray) -> np.ndarray:
    """From (row, column, slice, contrast)."""
    return array.transpose(*range(array.ndim - 1, 1, -1), 0, 1)


def from_matlab(files: list[Path], shape: tuple[int, ...]) -> np.ndarray:
    held = matlab.loadmat(files[0])
    names = [str(name[0]) for name in held["axes"].ravel()]
    assert names == ["y", "x", "slice", "contrast"][: len(shape)]
    return images_first(held["image"]).reshape(shape)


def from_numpy(files: list[Path], shape: tuple[int, ...]) -> np.ndarray:
    return np.load(files[0])


def from_nifti(files: list[Path], shape: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(nibabel.load(files[0]).dataobj)
    assert array.shape == ((5, 7, 3, 2) if len(shape) == 4 else (5, 7))
    return images_first(array).reshape(shape)


def from_dicom(files: list[Path], shape: tuple[int, ...]) -> np.ndarray:
    images = []
    for file in files:
        dataset = pydicom.dcmread(file)
        images.append(dataset.pixel_array * float(dataset.RescaleSlope) + float(dataset.RescaleIntercept))
    return np.stack(images).reshape(shape)


def from_png(files: list[Path], shape: tuple[int, ...]) -> np.ndarray:
    return np.stack([np.asarray(Image.open(file)) for file in files]).reshape(shape) / 255


def from_tiff(files: list[Path], shape: tuple[int, ...]) -> np.ndarray:
    with tifffile.TiffFile(files[0]) as file:
        assert file.series[0].axes == ("QZYX" if len(shape) == 4 else "YX")
        return file.asarray()


Back = Callable[[list[Path], tuple[int, ...]], np.ndarray]
BACK: dict[str, tuple[Back, float]] = {
    "bart": (from_bart, 0),
    "hdf5": (from_hdf5, 0),
    "matlab": (from_matlab, 0),
    "numpy": (from_numpy, 0),
    "nifti": (from_nifti, 0),
    "dicom": (from_dicom, 0.51 / 65535),
    "png": (from_png, 0.51 / 255),
    "tiff": (from_tiff, 0),
}
"""And how far from the numbers that were written it may be, in units of the largest."""


@pytest.mark.parametrize("form", WRITERS)
def test_a_writer_says_what_it_is(form: str) -> None:
    writer = WRITERS[form]
    assert writer.suffix.startswith(".")
    assert ("complex" in writer.holds) != (form in ("nifti", "dicom", "png", "tiff"))
    assert "geometry" in writer.holds
    assert writer.extra in (None, "mri")


@pytest.mark.parametrize("make", [many, single])
@pytest.mark.parametrize("form", WRITERS)
def test_what_was_written_is_read(form: str, make: Callable[[], Volume], tmp_path: Path) -> None:
    volume = make()
    made = save(form, tmp_path, "scan.one", volume)
    assert all(path.parent == tmp_path and path.name.startswith("scan.one") for path in made)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in made)
    files, several = files_of(made), len(volume) > 1
    assert files[0].name.endswith(WRITERS[form].suffix)
    assert made[0].is_dir() == (several and WRITERS[form].folders)
    back, tolerance = BACK[form]
    found, expected = back(files, volume.shape), numbers_of(volume)
    if not np.iscomplexobj(found):
        expected = np.abs(expected)
    if form == "png":
        expected = expected / expected.max()
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("form", WRITERS)
def test_images_are_read_one_by_one_and_a_few_times(form: str, tmp_path: Path) -> None:
    images = Images(4, 10, 5, 7)
    save(form, tmp_path, "scan", Volume((4, 10, 5, 7), ("time", "slice", "y", "x"), images, oblique()))
    assert images.calls <= 3 * 40
    assert images.most <= 3


@pytest.mark.parametrize("form", WRITERS)
def test_the_same_images_make_the_same_files(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for year, folder in enumerate((tmp_path / "a", tmp_path / "b")):
        folder.mkdir()
        monkeypatch.setattr("time.time", lambda year=year: 1e9 + 4e7 * year)
        monkeypatch.setattr("time.asctime", lambda year=year: f"New Year {year}")
        save(form, folder, "scan", many())
    assert bytes_in(tmp_path / "a") == bytes_in(tmp_path / "b")


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
@pytest.mark.parametrize("form", WRITERS)
def test_an_error_leaves_the_folder_as_it_was(form: str, error: type[BaseException], tmp_path: Path) -> None:
    volume = many()

    def broken(number: int) -> np.ndarray:
        if number == 4:
            raise error("broken")
        return volume.image(number)

    kind, told = (BadInput, "^image 4 of scan cannot be read: broken$") if error is OSError else (error, "broken")
    with pytest.raises(kind, match=told):
        save(form, tmp_path, "scan", replace(volume, image=broken))
    assert not list(tmp_path.iterdir())
    save(form, tmp_path, "scan", volume)
    before = bytes_in(tmp_path)
    with pytest.raises(kind, match=told):
        save(form, tmp_path, "scan", replace(volume, image=broken, about="another"))
    assert bytes_in(tmp_path) == before


@pytest.mark.parametrize("form", WRITERS)
def test_older_results_are_replaced(form: str, tmp_path: Path) -> None:
    longer = Volume((9, 5, 7), ("slice", "y", "x"), Images(9, 5, 7), oblique())
    save(form, tmp_path, "scan", longer)
    made = save(form, tmp_path, "scan", many())
    assert len(bytes_in(tmp_path)) == len(files_of(made))
    assert np.abs(BACK[form][0](files_of(made), (2, 3, 5, 7))).max() > 0


@pytest.mark.parametrize("form", WRITERS)
def test_images_without_any_signal_are_written(form: str, tmp_path: Path) -> None:
    volume = many(image=lambda _: np.zeros((5, 7), np.complex64))
    assert not BACK[form][0](files_of(save(form, tmp_path, "scan", volume)), volume.shape).any()


@pytest.mark.parametrize("form", [form for form in WRITERS if WRITERS[form].folders])
def test_a_folder_of_somebody_is_not_replaced(form: str, tmp_path: Path) -> None:
    thesis = tmp_path / WRITERS[form].folder("scan") / "thesis.tex"
    thesis.parent.mkdir()
    thesis.write_text("years of work")
    with pytest.raises(BadInput, match=r"would be replaced, and holds thesis\.tex"):
        save(form, tmp_path, "scan", many())
    assert thesis.exists()
    save(form, tmp_path, "scan", single())  # a file beside it harms nobody
    save("hdf5", tmp_path, "scan", many())


def test_all_formats_go_side_by_side(tmp_path: Path) -> None:
    made = [path for form in WRITERS for path in save(form, tmp_path, "scan", many())]
    assert sorted(tmp_path.iterdir()) == sorted(made)
    assert {path.name for path in made if path.is_dir()} == {"scan_png", "scan_dcm"}


@pytest.mark.parametrize(("form", "library"), [("dicom", "pydicom"), ("matlab", "scipy.io")])
def test_a_missing_library_is_named(form: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(BadInput, match=rf"{library} writes {form}: pip install 'pnpilot\[mri\]'"):
        save(form, tmp_path, "scan", single())


@pytest.mark.parametrize("form", ["bart", "hdf5", "matlab", "numpy"])
def test_a_full_disk_is_told(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is written: to find no room while writing through a map would end the process."""

    def full(handle: int, start: int, size: int) -> None:
        assert size >= 8 * 2 * 3 * 5 * 7
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full, raising=False)
    with pytest.raises(CannotWrite, match=r"cannot write to the folder .*: No space left on device"):
        save(form, tmp_path, "scan", many(image=unreadable))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="cannot write to the folder"):
        save("numpy", tmp_path / "nowhere", "scan", single())


# Where images lie.


def corners(affine: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Millimetres of the first and the last pixel along each axis."""
    numbers = np.array([(*index, 1) for index in np.ndindex(2, 2, 2)]) * (*(size - 1 for size in shape), 1)
    return numbers @ affine.T


@pytest.mark.parametrize("seed", range(5))
def test_geometry_survives_in_nifti_and_hdf5(seed: int, tmp_path: Path) -> None:
    geometry = oblique(seed)
    expected = geometry.affine(("y", "x", "slice"), (5, 7, 3))
    image = nibabel.load(save("nifti", tmp_path, "scan", many(geometry=geometry))[0])
    assert np.abs(corners(image.affine - expected, (5, 7, 3))).max() < 1e-4
    assert np.allclose(image.header.get_zooms()[:3], (1.5, 0.7, 4.0))
    assert image.header.get_xyzt_units()[0] == "mm"
    with h5py.File(save("hdf5", tmp_path, "scan", many(geometry=geometry))[0]) as file:
        assert np.abs(corners(file["image"].attrs["affine"] - expected, (5, 7, 3))).max() < 1e-4
        assert list(file["image"].attrs["axes"]) == ["contrast", "slice", "y", "x"]
        assert file.attrs["about"] == "tried σ"


@pytest.mark.parametrize("seed", range(5))
def test_geometry_survives_in_dicom(seed: int, tmp_path: Path) -> None:
    """The equation that the standard gives for the place of a pixel, in its axes."""
    geometry = oblique(seed)
    expected = np.diag([-1, -1, 1, 1]) @ geometry.affine(("y", "x", "slice"), (5, 7, 3))
    files = files_of(save("dicom", tmp_path, "scan", many(geometry=geometry)))
    for number, file in enumerate(files):
        dataset = pydicom.dcmread(file)
        row, column = np.array(dataset.ImageOrientationPatient, float).reshape(2, 3)
        between_rows, between_columns = map(float, dataset.PixelSpacing)
        for i, j in ((0, 0), (4, 0), (0, 6), (4, 6)):
            found = (
                np.array(dataset.ImagePositionPatient, float) + column * between_rows * i + row * between_columns * j
            )
            assert np.abs(found - (expected @ (i, j, number % 3, 1))[:3]).max() < 1e-4
        assert (float(dataset.SliceThickness), float(dataset.SpacingBetweenSlices)) == (4, 4)
        assert dataset.InstanceNumber == number + 1
    assert len({pydicom.dcmread(file).SOPInstanceUID for file in files}) == 6
    assert len({pydicom.dcmread(file).SeriesInstanceUID for file in files}) == 1


def test_volumes_encoded_in_three_axes_keep_their_place(tmp_path: Path) -> None:
    geometry = oblique(1, z=2.0, y=1.0, x=0.5)
    volume = Volume((3, 5, 7), ("x", "z", "y"), Images(3, 5, 7), geometry)
    image = nibabel.load(save("nifti", tmp_path, "scan", volume)[0])
    assert np.allclose(image.affine, geometry.affine(("z", "y", "x"), (5, 7, 3)), atol=1e-4)
    last = pydicom.dcmread(tmp_path / save("dicom", tmp_path, "scan", volume)[0] / "0002.dcm")
    expected = geometry.affine(("x", "z", "y"), (3, 5, 7)) @ (2, 0, 0, 1)
    assert np.allclose(last.ImagePositionPatient, expected[:3] * (-1, -1, 1), atol=1e-4)
    assert read_cfl(save("bart", tmp_path, "scan", volume)[0]).shape[:3] == (3, 7, 5)


def test_one_image_lies_in_the_middle_of_its_slice(tmp_path: Path) -> None:
    plane = oblique(2)
    for geometry in (plane, Geometry({axis: plane.steps[axis] for axis in "yx"}, plane.centre)):
        affine = nibabel.load(save("nifti", tmp_path, "scan", single(geometry=geometry))[0]).affine
        assert np.allclose((affine @ (2, 3, 0, 1))[:3], plane.centre, atol=1e-4)
        assert abs(np.linalg.det(affine)) > 0.1
        thick = pydicom.dcmread(save("dicom", tmp_path, "scan", single(geometry=geometry))[0]).SliceThickness
        assert thick == (4 if geometry is plane else None)


@pytest.mark.parametrize("geometry", [None, Geometry({"y": np.eye(3)[0], "x": np.eye(3)[1]}, np.zeros(3))])
def test_what_is_not_known_is_not_invented(geometry: Geometry | None, tmp_path: Path) -> None:
    """The distance of slices is not known in the second case."""
    image = nibabel.load(save("nifti", tmp_path, "scan", many(geometry=geometry))[0])
    assert np.array_equal(image.affine, np.eye(4))
    assert bytes(image.header["descrip"].item()) == b"position in space unknown; tried ?"
    dataset = pydicom.dcmread(files_of(save("dicom", tmp_path, "scan", many(geometry=geometry)))[0])
    assert dataset.SOPClassUID == pydicom.uid.SecondaryCaptureImageStorage
    assert "ImagePositionPatient" not in dataset and "PixelSpacing" not in dataset
    with h5py.File(save("hdf5", tmp_path, "scan", many(geometry=geometry))[0]) as file:
        assert "affine" not in file["image"].attrs


def test_several_slabs_have_no_common_place(tmp_path: Path) -> None:
    slabs = Volume((2, 3, 5, 7), ("slice", "z", "y", "x"), Images(2, 3, 5, 7), oblique(z=2.0, y=1.0, x=0.5))
    image = nibabel.load(save("nifti", tmp_path, "scan", slabs)[0])
    assert image.shape == (5, 7, 2, 3) and np.array_equal(image.affine, np.eye(4))


def test_dicom_has_no_words_for_sheared_pixels(tmp_path: Path) -> None:
    sheared = Geometry({"y": np.array([1.0, 0, 0]), "x": np.array([0.5, 1, 0]), "slice": np.eye(3)[2]}, np.zeros(3))
    with pytest.raises(BadInput, match=r"not at right angles.* choose --format nifti"):
        save("dicom", tmp_path, "scan", many(geometry=sheared))
    affine = nibabel.load(save("nifti", tmp_path, "scan", many(geometry=sheared))[0]).affine
    assert np.allclose(affine[:3, 1], (0.5, 1, 0))


# What the input's header says.


def old_nifti(shape: tuple[int, ...], kind: Any = nibabel.Nifti1Image) -> Any:
    geometry = oblique(3, x=1.0, y=2.0, slice=3.0)
    image = kind(np.zeros(shape, np.int16), geometry.affine(("x", "y", "slice"), shape[:3]))
    image.set_qform(image.affine, code=1)
    image.set_sform(image.affine, code=4)
    image.header.set_xyzt_units("mm", "msec")
    image.header["pixdim"][4] = 2500
    image.header["cal_max"] = 900
    image.header.set_slope_inter(7, 3)
    return image


@pytest.mark.parametrize("kind", [nibabel.Nifti1Image, nibabel.Nifti2Image])
def test_nifti_goes_back_to_the_place_it_came_from(kind: Any, tmp_path: Path) -> None:
    old = old_nifti((5, 7, 3, 2), kind)
    geometry = Geometry.of(old.affine, ("x", "y", "slice"), (5, 7, 3))
    images = Images(2, 3, 5, 7)
    volume = Volume((2, 3, 5, 7), ("time", "slice", "x", "y"), images, geometry, old.header)
    new = nibabel.load(save("nifti", tmp_path, "scan", volume)[0])
    assert isinstance(new, kind) and new.shape == old.shape
    assert np.array_equal(new.affine, old.header.get_best_affine())
    for name in ("qform_code", "sform_code", "pixdim", "quatern_b", "srow_x", "xyzt_units"):
        assert np.array_equal(new.header[name], old.header[name]), name
    assert new.header["cal_max"] == 0
    assert np.array_equal(np.asarray(new.dataobj), np.abs(images.array).transpose(2, 3, 1, 0))
    cropped = replace(volume, shape=(2, 3, 3, 7), image=lambda number: images(number)[1:4])
    new = nibabel.load(save("nifti", tmp_path, "scan", cropped)[0])
    assert np.allclose(new.affine @ (0, 0, 0, 1), old.affine @ (1, 0, 0, 1), atol=1e-4)
    assert new.header.get_xyzt_units() == ("mm", "msec")
    nowhere = nibabel.load(save("nifti", tmp_path, "scan", replace(volume, geometry=None))[0])
    assert nowhere.header.get_xyzt_units() == ("unknown", "msec")


def test_vectors_of_nifti_stay_in_their_axis(tmp_path: Path) -> None:
    vectors = Volume((4, 5, 7), ("vector", "x", "y"), Images(4, 5, 7))
    assert nibabel.load(save("nifti", tmp_path, "scan", vectors)[0]).shape == (5, 7, 1, 1, 4)
    contrasts = Volume((4, 5, 7), ("contrast", "x", "y"), Images(4, 5, 7))
    assert nibabel.load(save("nifti", tmp_path, "scan", contrasts)[0]).shape == (5, 7, 1, 4)


def old_dicom(**more: Any) -> Any:
    dataset = pydicom.Dataset()
    dataset.SpecificCharacterSet = "ISO_IR 100"
    dataset.SOPClassUID, dataset.SOPInstanceUID = pydicom.uid.CTImageStorage, "1.2.3"
    dataset.StudyInstanceUID, dataset.SeriesInstanceUID, dataset.FrameOfReferenceUID = "1.2.4", "1.2.5", "1.2.6"
    dataset.PatientName, dataset.PatientID, dataset.StudyDate = "Müller^Zoë", "7", "20200102"
    dataset.ImageType = ["ORIGINAL", "PRIMARY", "AXIAL"]
    dataset.ImagePositionPatient, dataset.SliceLocation = [1, 2, 3], 3
    dataset.SliceThickness, dataset.SeriesNumber, dataset.LossyImageCompression = 3, 4, "01"
    dataset.RescaleSlope, dataset.WindowCenter = 9, 50
    dataset.private_block(0x0009, "somebody", create=True).add_new(1, "LO", "secret")
    request = pydicom.Dataset()
    request.RequestedProcedureDescription = "Schädel"
    dataset.RequestAttributesSequence = [request]
    for keyword, value in more.items():
        setattr(dataset, keyword, value)
    return dataset


def test_dicom_keeps_patient_and_study(tmp_path: Path) -> None:
    old_dicom().save_as(tmp_path / "old.dcm", implicit_vr=False, little_endian=True)
    # Letters of a file are not decoded before somebody looks.
    old, before = (pydicom.dcmread(tmp_path / "old.dcm", force=True) for _ in range(2))
    new = pydicom.dcmread(save("dicom", tmp_path, "scan", single(geometry=oblique(), header=old, about="tried σ"))[0])
    kept = "SOPClassUID StudyInstanceUID FrameOfReferenceUID PatientName PatientID StudyDate SliceThickness"
    for keyword in (*kept.split(), "LossyImageCompression"):
        assert new[keyword].value == old[keyword].value, keyword
    assert new.RequestAttributesSequence[0].RequestedProcedureDescription == "Schädel"
    assert new.ImageType == ["DERIVED", "SECONDARY", "AXIAL"]
    assert new.DerivationDescription == "tried σ"
    assert new.SOPInstanceUID != old.SOPInstanceUID and new.SeriesInstanceUID != old.SeriesInstanceUID
    assert new.SeriesNumber != old.SeriesNumber
    assert not {"SliceLocation", "WindowCenter"} & {element.keyword for element in new}
    assert not any(element.tag.is_private for element in new)
    assert old.to_json() == before.to_json()


def test_input_that_breaks_the_standard_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "old.dcm"
    old_dicom(ImageType="ORIGINAL", StudyID="short").save_as(path, implicit_vr=False, little_endian=True)
    content = path.read_bytes()
    for right, wrong in (
        (b"IS\x02\x004 ", b"IS\x02\x00?!"),
        (b"20200102", b"tomorrow"),
    ):
        assert right in content
        content = content.replace(right, wrong)
    path.write_bytes(content)
    volume = single(geometry=oblique(), header=pydicom.dcmread(path, force=True))
    new = pydicom.dcmread(save("dicom", tmp_path, "scan", volume)[0])
    assert new.ImageType == ["DERIVED", "SECONDARY", "OTHER"]
    assert new.SeriesNumber == 1000
    assert new.PatientID == "7"


def test_images_of_a_file_of_many_frames_become_single_ones(tmp_path: Path) -> None:
    old = old_dicom(NumberOfFrames=6, SharedFunctionalGroupsSequence=[pydicom.Dataset()], VolumetricProperties="VOLUME")
    new = pydicom.dcmread(files_of(save("dicom", tmp_path, "scan", many(header=old)))[0])
    assert new.SOPClassUID == pydicom.uid.MRImageStorage
    assert not {"NumberOfFrames", "SharedFunctionalGroupsSequence", "VolumetricProperties"} & {
        element.keyword for element in new
    }


def test_other_images_have_other_identifiers(tmp_path: Path) -> None:
    found = set()
    for volume in (many(), many(about="another"), many(geometry=oblique(1)), many(header=old_dicom())):
        found |= {pydicom.dcmread(file).SOPInstanceUID for file in files_of(save("dicom", tmp_path, "scan", volume))}
    assert len(found) == 4 * 6


@pytest.mark.skipif(shutil.which("dciodvfy") is None, reason="dciodvfy is not installed: apt-get install dicom3tools")
@pytest.mark.parametrize("volume", [many(), single()], ids=["MR", "secondary capture"])
def test_dicom_keeps_to_the_standard(volume: Volume, tmp_path: Path) -> None:
    file = files_of(save("dicom", tmp_path, "scan", volume))[0]
    told = subprocess.run(["dciodvfy", file], capture_output=True, text=True).stderr
    assert "Image" in told
    assert not [line for line in told.splitlines() if line.startswith("Error")]


# Formats of their own kind.


@needs_bart
def test_bart_finds_its_axes(tmp_path: Path) -> None:
    save("bart", tmp_path, "scan", many())
    found = [
        subprocess.run(["bart", "show", "-d", str(axis), "scan"], cwd=tmp_path, check=True, capture_output=True)
        for axis in range(16)
    ]
    assert [int(run.stdout) for run in found] == [1, 5, 7, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 3, 1, 1]
    subprocess.run(["bart", "slice", "5", "1", "13", "2", "scan", "one"], cwd=tmp_path, check=True)
    assert np.array_equal(read_cfl(tmp_path / "one").squeeze(), numbers_of(many())[1, 2])


@pytest.mark.parametrize(
    ("axes", "places"),
    [
        (("slice", "x", "y"), [13, 0, 1]),
        (("slice", "y", "x"), [13, 1, 2]),
        (("z", "y", "x"), [2, 1, 0]),
        (("x", "y", "z"), [0, 1, 2]),
        (("batch", "time", "echo", "x", "z"), [15, 10, 5, 0, 2]),
        (("repetition", "phase", "contrast", "y", "x"), [10, 11, 5, 1, 2]),
        (("contrast", "echo", "y", "x"), [5, 10, 1, 2]),
    ],
)
def test_places_of_axes_in_bart(axes: tuple[str, ...], places: list[int]) -> None:
    assert bart_places(axes) == places


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(("echo", "contrast", "time", "slice", "batch", "z", *"abcd")), unique=True, max_size=9))
def test_no_two_axes_share_a_place_in_bart(others: list[str]) -> None:
    found = bart_places((*others, "y", "x"))
    assert len(set(found)) == len(found) and not {3, 4, 14} & set(found)


@pytest.mark.parametrize(
    ("form", "shape", "told"),
    [
        ("matlab", (2000, 400, 400), r"at most 2 GB, not 2\.6: choose --format hdf5"),
        ("nifti", (2,) * 7 + (5, 7), "NIfTI holds 7 axes, not 10: choose --format hdf5"),
        ("bart", (2,) * 12 + (5, 7), r"BART has no place for the axes .* choose --format hdf5"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(form: str, shape: tuple[int, ...], told: str, tmp_path: Path) -> None:
    axes = (*(f"other{index}" for index in range(len(shape) - 2)), "y", "x")
    with pytest.raises(BadInput, match=told):
        save(form, tmp_path, "scan", Volume(shape, axes, unreadable))


def test_a_few_bright_pixels_do_not_darken_a_picture(tmp_path: Path) -> None:
    array = np.random.default_rng(1).uniform(size=(4, 50, 60)).astype(np.complex64)
    array[1, 3, 4] = 1000
    volume = Volume((4, 50, 60), ("slice", "y", "x"), lambda number: array[number])
    white = brightest(volume, 0.001)
    assert white == np.sort(np.abs(array).ravel())[-12]
    greys = from_png(files_of(save("png", tmp_path, "scan", volume)), volume.shape)
    assert greys[1, 3, 4] == 1 and (greys == 1).mean() < 0.004
    assert np.abs(greys - np.minimum(np.abs(array) / white, 1)).max() < 0.51 / 255
