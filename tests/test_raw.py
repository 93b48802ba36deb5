"""What readers share: shapes that may be true, arrays on disk, places in space, and how files are refused."""

from __future__ import annotations

import errno
import math
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pnpilot.errors import BadInput, CannotWrite
from pnpilot.io.geometry import Geometry
from pnpilot.io.raw import MOST_BYTES, PACKED, Raw, Scratch, Stored, checked_shape
from pnpilot.io.readers import READERS, Reader, open_raw

unhurried = settings(deadline=None)
SPACE = ("y", "x", "slice")
numbers = st.floats(-100, 100, allow_subnormal=False)
sizes = st.integers(1, 300)


@st.composite
def affines(draw: st.DrawFn) -> np.ndarray:
    rows = draw(st.lists(st.tuples(numbers, numbers, numbers, numbers), min_size=3, max_size=3))
    return np.array([*rows, (0, 0, 0, 1)])


# Geometry.


@unhurried
@given(affine=affines(), shape=st.tuples(sizes, sizes, sizes))
def test_an_affine_survives(affine: np.ndarray, shape: tuple[int, int, int]) -> None:
    geometry = Geometry.of(affine, SPACE, shape)
    assert np.allclose(geometry.affine(SPACE, shape), affine, atol=1e-8)
    assert np.allclose(geometry.centre, (affine @ (*((np.array(shape) - 1) / 2), 1))[:3])
    for index, axis in enumerate(SPACE):
        assert np.isclose(geometry.spacing(axis), np.linalg.norm(affine[:3, index]))


@unhurried
@given(affine=affines(), shape=st.tuples(sizes, sizes, sizes), order=st.permutations(range(3)))
def test_the_order_of_axes_does_not_move_a_pixel(
    affine: np.ndarray, shape: tuple[int, int, int], order: list[int]
) -> None:
    geometry = Geometry.of(affine, SPACE, shape)
    pixel = [size // 3 for size in shape]
    other = geometry.affine([SPACE[axis] for axis in order], [shape[axis] for axis in order])
    assert np.allclose(other @ (*(pixel[axis] for axis in order), 1), affine @ (*pixel, 1), atol=1e-6)


@unhurried
@given(affine=affines(), cut=st.tuples(*[st.integers(0, 20)] * 3), shape=st.tuples(sizes, sizes, sizes))
def test_what_is_cut_off_evenly_does_not_move_the_rest(
    affine: np.ndarray, cut: tuple[int, int, int], shape: tuple[int, int, int]
) -> None:
    larger = [size + 2 * margin for size, margin in zip(shape, cut, strict=True)]
    cropped = Geometry.of(affine, SPACE, larger).affine(SPACE, shape)
    assert np.allclose(cropped @ (0, 0, 0, 1), affine @ (*cut, 1), atol=1e-6)
    assert np.allclose(cropped[:, :3], affine[:, :3])


def test_a_geometry_keeps_nothing_of_the_array_it_came_from() -> None:
    affine = np.eye(4)
    geometry = Geometry.of(affine, SPACE, (3, 3, 3))
    affine[:] = 7
    assert np.array_equal(geometry.affine(SPACE, (3, 3, 3)), np.eye(4))


# Shapes that a file claims.


@unhurried
@given(shape=st.lists(st.integers(1, 50), min_size=1, max_size=4).map(tuple))
def test_a_shape_that_the_file_can_hold_is_taken(shape: tuple[int, ...]) -> None:
    checked_shape(shape, np.dtype(np.complex64), 8 * math.prod(shape), "it")
    checked_shape(shape, np.dtype(np.complex64), -(-8 * math.prod(shape) // PACKED), "it")


@unhurried
@given(shape=st.lists(st.integers(-1, 2**70), max_size=20).map(tuple), stored=st.integers(0, 2**40))
def test_any_other_shape_is_told_in_a_line(shape: tuple[int, ...], stored: int) -> None:
    try:
        checked_shape(shape, np.dtype(np.float32), stored, "it")
        assert 4 * math.prod(shape) <= min(MOST_BYTES, PACKED * max(stored, 1)) and min(shape) > 0
    except BadInput as error:
        assert str(error).startswith("it ") and "\n" not in str(error)


@pytest.mark.parametrize(
    ("shape", "stored", "told"),
    [
        ((), 8, "it has 0 axes"),
        ((1,) * 17, 8, "it has 17 axes"),
        ((5, 0, 7), 8, r"it is empty: its shape is \(5, 0, 7\)"),
        ((PACKED + 1,), 4, "it claims 4.4e\\+03 bytes, and the file holds 4 for it"),
        ((MOST_BYTES,), MOST_BYTES, "it claims 4.4e\\+12 bytes"),
        ((2**40, 2**40), 100, r"it claims"),
        ((2**80,) * 16, 100, r"it claims more than 1e\+300 bytes"),
    ],
)
def test_why_a_shape_is_refused(shape: tuple[int, ...], stored: int, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        checked_shape(shape, np.dtype(np.float32), stored, "it")


def test_numpys_numbers_in_a_shape_do_not_overflow() -> None:
    with pytest.raises(BadInput, match="claims"):
        checked_shape(tuple(np.array([2**31 - 1] * 3, np.int32)), np.dtype(np.float32), 100, "it")


# Arrays on disk.


def test_arrays_on_disk_begin_as_zeros_and_keep_what_they_are_given(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "not" / "there")
    first, second = scratch.array((3, 5)), scratch.array((3, 5))
    assert first.dtype == np.complex64 and not first.any()
    first[1] = 2 + 1j
    assert not second.any()
    assert first.sum() == 5 * (2 + 1j)
    assert scratch.array((2,), np.float32).dtype == np.float32
    assert sum(path.stat().st_size for path in scratch.folder.iterdir()) == 2 * 8 * 15 + 8


def test_a_disk_without_room_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    with pytest.raises(BadInput, match=r"8e-05 GB are needed in .*, 1e-07 are free"):
        Scratch(tmp_path).array((10_000,))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("number", "told"), [(errno.ENOSPC, True), (errno.EOPNOTSUPP, False)])
def test_room_is_taken_at_once(number: int, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(handle: int, start: int, size: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.posix_fallocate", refusing, raising=False)
    if told:
        with pytest.raises(CannotWrite, match="cannot write to the folder"):
            Scratch(tmp_path).array((3, 5))
    else:
        assert not Scratch(tmp_path).array((3, 5)).any()


# What a file holds.


def test_axes_without_a_name_each_are_refused() -> None:
    with pytest.raises(ValueError, match=r"2 names for the axes of an array \(3, 4, 5\)"):
        Stored(np.zeros((3, 4, 5)), ("y", "x"))


def test_axes_of_one_name_are_refused() -> None:
    with pytest.raises(BadInput, match="two axes of an array have one name: y, x, y"):
        Stored(np.zeros((3, 4, 5)), ("y", "x", "y"))


def test_a_file_is_let_go_of_whatever_happens() -> None:
    closed = []
    with pytest.raises(RuntimeError), Raw(None, "numpy", closes=lambda: closed.append(True)):
        raise RuntimeError
    assert closed


# Refusals.


def made(tmp_path: Path, name: str = "scan.npy", content: bytes = b"something") -> Path:
    (tmp_path / name).write_bytes(content)
    return tmp_path / name


def refusal(path: Path, tmp_path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        open_raw(path, Scratch(tmp_path / "scratch"))
    assert "\n" not in str(caught.value) and str(caught.value).count(str(path)) == 1
    return str(caught.value).removeprefix(str(path))


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    assert "there is no such file" in refusal(tmp_path / "nothing.npy", tmp_path)
    assert "it is a folder; name the files in it" in refusal(tmp_path, tmp_path)
    assert "it is empty" in refusal(made(tmp_path, content=b""), tmp_path)
    assert "no reader knows it; files that are read end in" in refusal(made(tmp_path, "thesis.tex"), tmp_path)
    os.mkfifo(tmp_path / "pipe.npy")
    assert "it is a device or a pipe" in refusal(tmp_path / "pipe.npy", tmp_path)


class Failing(Reader):
    """A reader that raises what it is told to."""

    error: BaseException

    def read(self, path: Path, scratch: Scratch, key: str | None = None) -> Raw:
        raise self.error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (BadInput("it is broken"), ": it is broken"),
        (MemoryError(), ": it asks for more memory than there is"),
        (ImportError("gone", name="pydicom"), ": pydicom is needed: pip install 'pnpilot[mri]'"),
        (RuntimeError("damaged\nat byte 7"), " cannot be read: damaged"),
        (RecursionError(), " cannot be read: RecursionError"),
        (KeyError("x"), " cannot be read: 'x'"),
    ],
)
def test_whatever_a_reader_raises_is_a_line(
    error: BaseException, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pnpilot.io.readers.base.reader_of", lambda _: Failing())
    Failing.error = error
    assert refusal(made(tmp_path), tmp_path) == told


def test_ctrl_c_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pnpilot.io.readers.base.reader_of", lambda _: Failing())
    Failing.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        open_raw(made(tmp_path), Scratch(tmp_path))


@settings(max_examples=30, deadline=None)
@given(content=st.binary(min_size=1, max_size=300), which=st.integers(0, 99))
def test_any_content_under_any_name_is_read_or_told(
    content: bytes, which: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    endings = [suffix for name in READERS for suffix in READERS[name].suffixes]
    folder = tmp_path_factory.mktemp("any")
    path = made(folder, f"scan{endings[which % len(endings)]}", content)
    try:
        with open_raw(path, Scratch(folder / "scratch")) as raw:
            assert isinstance(raw, Raw)
    except BadInput as error:
        assert "\n" not in str(error) and str(path) in str(error)


@pytest.mark.parametrize("codes", ["LPS", "RAS", "PIR", "ASL", "SAL", "IRA"])
def test_upright_pictures_are_those_that_nibabel_reorients_to(codes: str) -> None:
    """Rows to the back or the feet, columns to the left or the back: L, P and I are the ends of NIfTI's axes turned."""
    import nibabel

    volume = np.arange(4 * 5 * 6.0).reshape(4, 5, 6)
    turned = nibabel.orientations.axcodes2ornt(tuple(codes))
    affine = np.diag([1.0, 1.0, 1.0, 1.0])
    affine[:3, :3] = 0
    for index, (axis, sign) in enumerate(turned):
        affine[int(axis), index] = 2.0 * sign
    geometry = Geometry.of(affine, ("x", "y", "slice"), volume.shape)
    seen = geometry.upright(volume[:, :, 3], ("x", "y"))
    plane = {code for code in codes[:2]}
    wanted = {"axial": "PL", "coronal": "IL", "sagittal": "IP"}
    view = "sagittal" if not plane & set("RL") else "coronal" if not plane & set("AP") else "axial"
    image = nibabel.Nifti1Image(volume, affine)
    third = next(code for pair in ("RL", "AP", "SI") for code in pair if code == codes[2])
    expected = image.as_reoriented(
        nibabel.orientations.ornt_transform(turned, nibabel.orientations.axcodes2ornt((*wanted[view], third)))
    ).get_fdata()[:, :, 3]
    assert np.array_equal(seen, expected)
    assert geometry.upright(volume[:, :, 3], ("row", "column")) is not None
    unknown = Geometry(geometry.steps, geometry.centre, oriented=False)
    assert np.array_equal(unknown.upright(volume[:, :, 3], ("x", "y")), volume[:, :, 3])
