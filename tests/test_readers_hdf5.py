"""Readers of HDF5 files: ISMRMRD's, fastMRI's and MATLAB's (older ones of MATLAB too), and what is wrong with some."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pnpilot.errors import BadInput
from pnpilot.io.raw import Raw, Scratch
from pnpilot.io.readers import READERS, _trial, open_raw
from tests.files.make_hdf5 import acquired, header, images, kspace, write_mrd

FILES = Path(__file__).parent / "files"
KNOWN = {
    "mrd_slices.h5": "mrd",
    "mrd_volume.mrd": "mrd",
    "fastmri_multi.h5": "fastmri",
    "fastmri_single.h5": "fastmri",
    "matlab_5.mat": "matlab",
    "matlab_73.mat": "matlab",
}
FLAT = header({"x": 8, "y": 6, "z": 1}, {"x": 8, "y": 6, "z": 1})
WHOLE = kspace(images(2, 6, 8))


@pytest.fixture(autouse=True)
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each trial takes a fraction of a second; `test_readers_trial.py` is about them."""
    monkeypatch.setattr(_trial, "tried", lambda *_: None)


@pytest.fixture
def read(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Raw]:
    """Opens a file, a committed one by its name, and closes it after the test."""

    def opened(path: Path | str, key: str | None = None) -> Raw:
        raw = open_raw(FILES / path, Scratch(tmp_path / "scratch"), key)
        request.addfinalizer(raw.closes)
        return raw

    return opened


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., str]:
    """What is said of a file that is refused: one line that names it."""

    def told(path: Path, key: str | None = None) -> str:
        with pytest.raises(BadInput) as caught:
            open_raw(path, Scratch(tmp_path / "scratch"), key).closes()
        said = str(caught.value)
        assert said.startswith(str(path))
        assert len(said.splitlines()) == 1
        return said.removeprefix(str(path))

    return told


def numbers(stored: Any) -> np.ndarray:
    assert stored is not None
    return np.asarray(stored.data[...])


def scan(path: Path, lines: list[Any] | None = None, xml: str | bytes = FLAT) -> Path:
    """An MRD file of one slice 6 × 8 with two coils."""
    return write_mrd(path, xml, lines if lines is not None else [acquired(WHOLE[:, y], y) for y in range(6)])


def hdf5(path: Path, change: Callable[[Any], Any], source: str | None = None) -> Path:
    """An HDF5 file, perhaps one of ours, after a change."""
    import h5py

    if source is not None:
        shutil.copy(FILES / source, path)
    with h5py.File(path, "a") as file:
        change(file)
    return path


@pytest.mark.parametrize("name", KNOWN)
def test_files_are_known_by_what_is_in_them(name: str, tmp_path: Path) -> None:
    for suffix in (Path(name).suffix, ".h5", ".mat", ".mrd", ".dat"):
        path = Path(shutil.copy(FILES / name, tmp_path / f"file{suffix}"))
        head = path.read_bytes()[:4096]
        ours = [reader for reader in set(KNOWN.values()) if READERS[reader].knows(path, head)]
        assert ours == [KNOWN[name]]


def test_what_is_no_file_of_ours_is_not_known(tmp_path: Path) -> None:
    for content in (b"x", b"\x89HDF\r\n\x1a", b"MATLA", bytes(4096)):
        path = tmp_path / "file.dat"
        path.write_bytes(content)
        assert not any(READERS[reader].knows(path, content) for reader in KNOWN.values())


# MRD


def test_lines_of_slices_are_sorted(read: Callable[..., Raw]) -> None:
    raw = read("mrd_slices.h5")
    assert raw.measured is not None and raw.measured.axes == ("slice", "coil", "y", "x")
    truth = np.stack([kspace(images(2, 10, 24, shift)) for shift in (0, 0.2)])
    for stored, steps in ((raw.measured, [0, 2, 4, 5, 6, 8]), (raw.calibration, [4, 5, 6])):
        expected = np.zeros_like(truth)
        expected[:, :, steps] = truth[:, :, steps]
        if stored is raw.measured:
            expected[:, :, [4, 5, 6]] = truth[:, :, [4, 5, 6]]
        np.testing.assert_allclose(numbers(stored), expected, atol=1e-6)
    assert (raw.matrix, raw.oversampled, raw.family) == ({"x": 12}, "x", "hdf5")
    told = "; ".join(raw.notes)
    assert "averaged 2 averages" in told and "2 lines of navigators" in told and "noise scan of 128" in told


def test_the_noise_scan_is_as_strong_as_the_noise_of_the_lines(tmp_path: Path, read: Callable[..., Raw]) -> None:
    raw = read("mrd_slices.h5")
    assert raw.noise is not None and raw.noise.axes == ("coil", "sample")
    # Four times as long per sample: half as strong. One of six lines was measured twice.
    assert numbers(raw.noise).real.std() == pytest.approx(0.01 * 2 / np.sqrt(7 / 6), rel=0.1)
    for time, strength in ((5.0, 1.0), (0.0, 1.0), (1.25, 0.5)):
        noise = acquired(np.ones((2, 8)), flags=("NOISE_MEASUREMENT",), sample_time_us=time)
        path = scan(tmp_path / "scan.h5", [noise, *(acquired(WHOLE[:, y], y) for y in range(6))])
        np.testing.assert_allclose(numbers(read(path).noise), strength)


def test_the_geometry_is_that_of_the_slices(read: Callable[..., Raw]) -> None:
    geometry = read("mrd_slices.h5").geometry
    assert geometry is not None
    # 240 mm over 12 pixels to the back, 200 mm over 10 to the left; the second slice lies 8 mm lower.
    expected = {"x": (0, -20, 0), "y": (-20, 0, 0), "slice": (0, 0, -8)}
    for axis, step in expected.items():
        np.testing.assert_allclose(geometry.steps[axis], step)
    np.testing.assert_allclose(geometry.centre, (-10, -20, 26))


def test_without_directions_there_is_no_geometry(tmp_path: Path, read: Callable[..., Raw]) -> None:
    lines = [acquired(WHOLE[:, y], y, read_dir=(0.0, 0.0, 0.0)) for y in range(6)]
    assert read(scan(tmp_path / "scan.h5", lines)).geometry is None


def test_slices_out_of_order_have_no_geometry(tmp_path: Path, read: Callable[..., Raw]) -> None:
    order = {0: 0.0, 1: 20.0, 2: 10.0}
    lines = [
        acquired(WHOLE[:, y], y, slice=number, position=(0.0, 0.0, place))
        for number, place in order.items()
        for y in range(6)
    ]
    raw = read(scan(tmp_path / "scan.h5", lines))
    assert raw.geometry is None and "equal distances" in raw.notes[-1]


def test_volumes_contrasts_and_late_echoes(read: Callable[..., Raw]) -> None:
    raw = read("mrd_volume.mrd")
    assert raw.measured is not None and raw.measured.axes == ("contrast", "coil", "z", "y", "x")
    profile = np.array([0.2, 1, 0.8, 0.1])[:, None, None]
    truth = np.stack([kspace(images(2, 5, 8, s)[:, None] * profile, (-3, -2, -1)) for s in (0, 0.1)])
    truth[..., :2] = 0  # the echo began late: centre at sample 3 after one that is discarded
    np.testing.assert_allclose(numbers(raw.measured), truth, atol=1e-5)
    assert raw.geometry is not None and raw.geometry.spacing("z") == pytest.approx(7.5)
    assert "2 contrasts are separate images" in raw.notes


@pytest.mark.parametrize("reverse", [False, True])
def test_what_is_discarded_is_discarded_as_it_was_read(reverse: bool, tmp_path: Path, read: Callable[..., Raw]) -> None:
    flags = ("REVERSE",) if reverse else ()
    ends = {"discard_pre": 2, "discard_post": 1}
    lines = []
    for y in range(6):
        padded = np.pad(WHOLE[:, y, ::-1] if reverse else WHOLE[:, y], ((0, 0), (2, 1)), constant_values=9)
        lines.append(acquired(padded, y, flags, centre=4 + (1 if reverse else 2), **ends))
    np.testing.assert_allclose(numbers(read(scan(tmp_path / "scan.h5", lines)).measured), WHOLE, atol=1e-6)


def test_every_counter_of_images_is_an_axis(tmp_path: Path, read: Callable[..., Raw]) -> None:
    lines = [
        acquired(WHOLE[:, y] * (1 + r + 10 * s), y, repetition=r * 65535, set=s, segment=y, average=7)
        for r in range(2)
        for s in range(3)
        for y in range(6)
    ]
    raw = read(scan(tmp_path / "scan.h5", lines))
    assert raw.measured is not None and raw.measured.axes == ("repetition", "preparation", "coil", "y", "x")
    assert raw.measured.data.shape == (2, 3, 2, 6, 8)
    np.testing.assert_allclose(raw.measured.data[1, 2], WHOLE * 22, rtol=1e-5)


def test_centres_that_were_left_at_zero_are_those_of_the_matrix(tmp_path: Path, read: Callable[..., Raw]) -> None:
    lines = [acquired(WHOLE[:, y], y, centre=0) for y in range(6)]
    xml = FLAT.replace("<center>3</center>", "<center>0</center>")
    assert xml != FLAT
    np.testing.assert_allclose(numbers(read(scan(tmp_path / "scan.h5", lines, xml)).measured), WHOLE)


def test_lines_of_a_second_encoding_are_left_out(tmp_path: Path, read: Callable[..., Raw]) -> None:
    lines = [acquired(WHOLE[:, y], y) for y in range(6)] + [acquired(np.ones((3, 4)), 900, encoding_space_ref=1)]
    raw = read(scan(tmp_path / "scan.h5", lines))
    np.testing.assert_allclose(numbers(raw.measured), WHOLE)
    assert "1 lines of a second encoding are left out" in raw.notes


def test_a_calibration_that_does_not_fit_is_left_out(tmp_path: Path, read: Callable[..., Raw]) -> None:
    lines = [acquired(WHOLE[:, y], y) for y in range(6)]
    lines.append(acquired(np.ones((2, 20)), 3, ("PARALLEL_CALIBRATION",)))
    raw = read(scan(tmp_path / "scan.h5", lines))
    assert raw.calibration is None and "calibration scan is left out" in raw.notes[-1]


@pytest.mark.parametrize("alone", [False, True])
def test_calibration_lines_count_where_they_belong(alone: bool, tmp_path: Path, read: Callable[..., Raw]) -> None:
    both = {2: ("PARALLEL_CALIBRATION_AND_IMAGING",), 3: ("PARALLEL_CALIBRATION",) if alone else ()}
    raw = read(scan(tmp_path / "scan.h5", [acquired(WHOLE[:, y], y, both.get(y, ())) for y in range(6)]))
    found = np.flatnonzero(np.abs(numbers(raw.measured)).sum((0, 2)))
    assert found.tolist() == ([0, 1, 2, 4, 5] if alone else [0, 1, 2, 3, 4, 5])
    if alone:
        assert np.flatnonzero(np.abs(numbers(raw.calibration)).sum((0, 2))).tolist() == [2, 3]
    else:
        assert raw.calibration is None


def test_the_key_names_a_group(tmp_path: Path, read: Callable[..., Raw], refused: Callable[..., str]) -> None:
    path = write_mrd(tmp_path / "scan.h5", FLAT, [acquired(WHOLE[:, y], y) for y in range(6)], "second")
    for key in (None, "second"):
        np.testing.assert_allclose(numbers(read(path, key).measured), WHOLE)
    assert "no group 'first' in it holds acquisitions" in refused(path, "first")


@pytest.mark.parametrize(
    ("xml", "told"),
    [
        (FLAT.replace(">cartesian<", ">radial<"), "trajectory is radial, and its acquisitions do not say where"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]>" + FLAT, "declares entities"),
        ("nothing", "not understood"),
        (FLAT[: len(FLAT) // 2], "not understood"),
        (b"\xff\xfe" + FLAT.encode("utf-16-le").replace(b"\0", b"\x01"), "UTF-8"),
        (FLAT.replace("<x>8</x>", "<x>eight</x>"), "matrix size of 'eight'"),
        (FLAT.replace("<x>8</x>", "<x>-8</x>"), "matrix size of -8"),
        (FLAT.replace("<y>6</y>", "<y>65535</y>"), "claims"),
        (FLAT.replace("<x>8</x>", "<x>6</x>"), "do not fit into an encoded matrix of 6"),
        ("a" * 10_000_001, "the most are 10000000"),
    ],
)
def test_headers_that_cannot_be_are_told(xml: Any, told: str, tmp_path: Path, refused: Callable[..., str]) -> None:
    assert told in refused(scan(tmp_path / "scan.h5", xml=xml))


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([acquired(WHOLE[:, 0], 65535)], "its line 65535 along y"),
        ([acquired(WHOLE[:, 0]), acquired(WHOLE[:, 0], kspace_encode_step_2=65535)], "its line 65535 along z"),
        ([acquired(WHOLE[:, 0]), acquired(WHOLE[:1, 1], 1)], "number of coils: 1, 2"),
        ([acquired(WHOLE[:, 0]), acquired(WHOLE[:, 1, :7], 1)], "number of samples: 7, 8"),
        ([acquired(WHOLE[:, 0], discard_pre=5, discard_post=5)], "discards all of its samples"),
        ([acquired(WHOLE[:, 0], flags=("NOISE_MEASUREMENT",))], "none of its acquisitions is a line of an image"),
        ([acquired(WHOLE[:, 0], centre=7)], "do not fit"),
    ],
)
def test_lines_that_cannot_be_are_told(
    lines: list[Any], told: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    assert told in refused(scan(tmp_path / "scan.h5", lines))


def test_many_images_of_few_lines_are_told(tmp_path: Path, refused: Callable[..., str]) -> None:
    """Every line has counters of its own: the images that they could count would fill the disk."""
    lines = [acquired(np.ones((1, 2)), repetition=n, contrast=n, phase=n, set=n, slice=n) for n in range(12)]
    assert "its k-space claims" in refused(scan(tmp_path / "scan.h5", lines))


def test_heads_that_promise_more_than_the_line_are_told(tmp_path: Path, refused: Callable[..., str]) -> None:
    def lie(file: Any) -> None:
        data = file["dataset/data"][:]
        data["head"]["number_of_samples"] = 65535
        file["dataset/data"][:] = data

    xml = FLAT.replace("<x>8</x>", "<x>65535</x>")
    path = hdf5(scan(tmp_path / "scan.h5", xml=xml), lie)
    assert "do not fit" in refused(path) or "claims" in refused(path)


def test_heads_whose_fields_share_bytes_are_told(tmp_path: Path, refused: Callable[..., str]) -> None:
    """Four bytes with a larger exponent than a float32 has: h5py makes eight of them in the same place, and crashes."""
    path = scan(tmp_path / "scan.h5")
    content = path.read_bytes()
    # Where exponent and mantissa begin and how long they are, and the bias of the exponent.
    usual, other = bytes([23, 8, 0, 23, 127, 0, 0, 0]), bytes([22, 9, 0, 22, 255, 0, 0, 0])
    at = content.index(usual, content.index(b"sample_time_us"))
    path.write_bytes(content[:at] + other + content[at + len(other) :])
    assert "not laid out as ISMRMRD has them" in refused(path)


# fastMRI and other HDF5


def test_fastmri_with_coils(read: Callable[..., Raw]) -> None:
    raw = read("fastmri_multi.h5")
    assert raw.measured is not None and raw.measured.axes == ("slice", "coil", "x", "y")
    mask = np.arange(16) % 2 == 0
    np.testing.assert_allclose(numbers(raw.measured)[0], kspace(images(3, 24, 16)) * mask, atol=1e-6)
    assert raw.mask is not None and raw.mask.axes == ("y",)
    np.testing.assert_array_equal(numbers(raw.mask), mask)
    assert raw.maps is not None and raw.maps.axes == raw.measured.axes
    assert (raw.matrix, raw.oversampled, raw.family) == ({"x": 12, "y": 12}, "x", "hdf5")
    assert raw.geometry is not None and [raw.geometry.spacing(axis) for axis in ("x", "slice")] == [20, 30]
    assert "orientation and position are not" in raw.notes[0]


def test_fastmri_with_one_coil(read: Callable[..., Raw]) -> None:
    raw = read("fastmri_single.h5")
    assert raw.measured is not None and raw.measured.axes == ("slice", "x", "y")
    np.testing.assert_allclose(raw.measured.data[0], kspace(images(1, 24, 16))[0], atol=1e-6)
    pictures = read("fastmri_single.h5", "reconstruction_esc")
    assert pictures.pictures and pictures.measured is not None and pictures.measured.axes == ("slice", "x", "y")
    assert pictures.matrix == {} and pictures.geometry is None


@pytest.mark.parametrize(
    ("array", "axes"),
    [
        (WHOLE[None], ("slice", "coil", "x", "y")),
        (WHOLE, None),
        (np.stack([WHOLE.real, WHOLE.imag], -1), None),
        (WHOLE[0], None),
    ],
)
def test_other_hdf5_tells_little_of_axes(
    array: np.ndarray, axes: tuple[str, ...] | None, tmp_path: Path, read: Callable[..., Raw]
) -> None:
    path = hdf5(tmp_path / "scan.hdf5", lambda file: file.update({"kspace": array}) or file)
    raw = read(path)
    assert raw.measured is not None and raw.measured.axes == axes and raw.geometry is None
    np.testing.assert_array_equal(numbers(raw.measured), array)


def test_arrays_by_another_name(tmp_path: Path, read: Callable[..., Raw], refused: Callable[..., str]) -> None:
    path = hdf5(tmp_path / "a.h5", lambda file: file.update({"group/scan": WHOLE, "other": WHOLE.real}))
    for key in (None, "group/scan"):
        np.testing.assert_array_equal(numbers(read(path, key).measured), WHOLE)
    assert read(path, "other").measured is not None
    assert "no array 'nothing' in it; there are group/scan 2×6×8, other 2×6×8" in refused(path, "nothing")
    path = hdf5(tmp_path / "d.h5", lambda file: file.update({"one": WHOLE, "another": WHOLE}))
    assert "several arrays are complex" in refused(path)
    path = hdf5(tmp_path / "b.h5", lambda file: file.update({"other": WHOLE.real}))
    assert "no array is called kspace; name one by its key: other 2×6×8" in refused(path)
    assert "it holds none" in refused(hdf5(tmp_path / "c.h5", lambda _: None))


def test_links_within_a_file_are_followed(tmp_path: Path, read: Callable[..., Raw]) -> None:
    import h5py

    path = hdf5(tmp_path / "a.h5", lambda file: file.update({"b/c": WHOLE, "kspace": h5py.SoftLink("/b/c")}))
    np.testing.assert_array_equal(numbers(read(path).measured), WHOLE)


@pytest.mark.parametrize("way", ["kspace", "group/kspace", "soft", "mask"])
def test_other_files_are_never_opened(way: str, tmp_path: Path, refused: Callable[..., str]) -> None:
    import h5py

    hdf5(tmp_path / "secret.h5", lambda file: file.update({"a": WHOLE, "b/kspace": WHOLE}))

    def link(file: Any) -> None:
        if way == "group/kspace":
            file["group"] = h5py.ExternalLink("secret.h5", "/b")
        elif way == "soft":
            file["out"] = h5py.ExternalLink("secret.h5", "/a")
            file["kspace"] = h5py.SoftLink("/out")
        else:
            file[way] = h5py.ExternalLink("secret.h5", "/a")
            if way == "mask":
                file["kspace"] = WHOLE

    path = hdf5(tmp_path / "scan.h5", link)
    with h5py.File(path) as file:  # the link does lead there
        assert file["kspace" if way in ("soft", "mask") else way].shape == WHOLE.shape
    assert "is a link to another file, which is not opened" in refused(
        path, None if way == "mask" else way.replace("soft", "kspace")
    )


def test_acquisitions_in_another_file_are_never_opened(tmp_path: Path, refused: Callable[..., str]) -> None:
    import h5py

    scan(tmp_path / "secret.h5")
    path = hdf5(tmp_path / "scan.h5", lambda file: file.update({"dataset": h5py.ExternalLink("secret.h5", "/dataset")}))
    assert "it holds none" in refused(path)


def strange(file: Any, what: str) -> None:
    import h5py

    if what == "virtual":
        layout = h5py.VirtualLayout(WHOLE.shape, WHOLE.dtype)
        layout[:] = h5py.VirtualSource("secret.h5", "a", WHOLE.shape)
        file.create_virtual_dataset("kspace", layout)
    elif what == "external":
        file.create_dataset("kspace", (6, 8), "c8", external=[("secret.raw", 0, 6 * 8 * 8)])
    elif what == "huge":
        file.create_dataset("kspace", (10**6, 10**6), "c8", chunks=(100, 100))
    elif what == "block":
        file.create_dataset("kspace", (6, 8), "c8", maxshape=(None, None), chunks=(9000, 9000), compression="gzip")
        file["kspace"].id.write_direct_chunk((0, 0), b"x")
    elif what == "empty":
        file["kspace"] = np.zeros((0, 3), np.complex64)
    elif what == "null":
        file["kspace"] = h5py.Empty("c8")
    elif what == "one":
        file["kspace"] = 1 + 1j
    elif what == "text":
        file["kspace"] = ["a", "b"]
    elif what == "ragged":
        file.create_dataset("kspace", (3,), h5py.vlen_dtype(np.float32))
    elif what == "records":
        file["kspace"] = np.zeros(3, [("a", "f4"), ("b", "f4")])
    elif what == "group":
        file["kspace/a"] = WHOLE
    elif what == "dangling":
        file["kspace"] = h5py.SoftLink("/nothing")
    elif what == "circle":
        file["kspace"] = h5py.SoftLink("/other")
        file["other"] = h5py.SoftLink("/kspace")


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("virtual", "lies in another file"),
        ("external", "lies in another file"),
        ("huge", "claims 8e+12 bytes, and the file holds 0"),
        ("block", "a block of kspace claims"),
        ("empty", "kspace is empty"),
        ("null", "kspace is empty"),
        ("one", "is a single value"),
        ("text", "holds text or objects"),
        ("ragged", "holds text or objects"),
        ("records", "holds text or objects"),
        ("group", "not an array of numbers but a group"),
        ("dangling", "a link that leads nowhere"),
        ("circle", "a link that leads in a circle"),
    ],
)
def test_what_is_no_array_of_numbers_is_told(what: str, told: str, tmp_path: Path, refused: Callable[..., str]) -> None:
    assert told in refused(hdf5(tmp_path / "scan.h5", lambda file: strange(file, what)))


# MATLAB


@pytest.mark.parametrize("name", ["matlab_5.mat", "matlab_73.mat"])
def test_matlab_finds_variables_by_name(name: str, read: Callable[..., Raw]) -> None:
    raw = read(name)
    pictures = images(4, 12, 10).transpose(2, 1, 0)
    for stored, expected in ((raw.measured, kspace(images(4, 12, 10)).transpose(2, 1, 0)), (raw.maps, pictures)):
        assert stored is not None and stored.axes is None and stored.data.dtype == np.complex64
        np.testing.assert_allclose(numbers(stored), expected, atol=1e-6)
        for index in ((slice(2, 5), 3), 4, (Ellipsis, 1), (slice(None), slice(1, 3), 2)):
            np.testing.assert_allclose(stored.data[index], expected[index], atol=1e-6)
    assert numbers(raw.mask).shape == (10, 12)
    assert raw.family == ("matlab" if name == "matlab_5.mat" else "hdf5")
    assert read(name, "sens").measured is not None


@pytest.mark.parametrize("name", ["matlab_5.mat", "matlab_73.mat"])
@pytest.mark.parametrize(
    ("key", "told"),
    [("title", "class char"), ("cells", "class cell"), ("settings", "class struct"), ("none", "no variable 'none'")],
)
def test_matlabs_other_variables_are_told(name: str, key: str, told: str, refused: Callable[..., str]) -> None:
    assert told in refused(FILES / name, key)


@pytest.mark.parametrize(("key", "told"), [("thin", "class sparse"), ("nothing", "class empty array")])
def test_variables_of_version_7_3_are_told(key: str, told: str, refused: Callable[..., str]) -> None:
    assert told in refused(FILES / "matlab_73.mat", key)


def test_version_7_3_with_wrong_things_is_told(tmp_path: Path, refused: Callable[..., str]) -> None:
    import h5py

    def cells(file: Any) -> None:
        del file["KSpace"], file["sens"]
        file["kspace"] = h5py.ExternalLink(str(FILES / "matlab_73.mat"), "KSpace")

    path = hdf5(tmp_path / "a.mat", cells, "matlab_73.mat")
    assert "no variable is complex" in refused(path) and "class link" in refused(path, "kspace")

    def huge(file: Any) -> None:
        del file["KSpace"]
        file.create_dataset("KSpace", (10**6, 10**6), "f4", chunks=(9, 9)).attrs["MATLAB_class"] = np.bytes_("single")

    assert "KSpace claims 4e+12 bytes" in refused(hdf5(tmp_path / "b.mat", huge, "matlab_73.mat"))


def test_the_only_complex_variable_is_k_space(
    tmp_path: Path, read: Callable[..., Raw], refused: Callable[..., str]
) -> None:
    import scipy.io
    import scipy.sparse

    content: dict[str, Any] = {"a": WHOLE, "b": WHOLE.real, "c": "text", "maps": WHOLE}
    scipy.io.savemat(tmp_path / "one.mat", content)
    raw = read(tmp_path / "one.mat")
    np.testing.assert_array_equal(numbers(raw.measured), WHOLE)
    assert "k-space is the variable a" in raw.notes
    scipy.io.savemat(tmp_path / "two.mat", content | {"d": WHOLE})
    told = refused(tmp_path / "two.mat")
    assert "several variables are complex" in told and "a 2×6×8 single" in told and "b 2×6×8 single" in told
    scipy.io.savemat(tmp_path / "thin.mat", {"kspace": scipy.sparse.eye(4).tocsc()})
    assert "class sparse" in refused(tmp_path / "thin.mat", "kspace")
    scipy.io.savemat(tmp_path / "old.mat", {"kspace": WHOLE[0]}, format="4")
    np.testing.assert_array_equal(numbers(read(tmp_path / "old.mat").measured), WHOLE[0])


def test_a_variable_that_claims_too_much_is_told(tmp_path: Path, refused: Callable[..., str]) -> None:
    import scipy.io

    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"kspace": np.ones((6, 8))})
    path.write_bytes(
        path.read_bytes().replace(np.array([6, 8], "<i4").tobytes(), np.array([10**6] * 2, "<i4").tobytes())
    )
    assert "kspace claims 1.6e+13 bytes" in refused(path)


# Damage


@pytest.mark.parametrize("name", KNOWN)
def test_files_that_were_cut_off_are_told(name: str, tmp_path: Path, refused: Callable[..., str]) -> None:
    content = (FILES / name).read_bytes()
    path = tmp_path / name
    # The end of the older file is a variable that is not wanted.
    for length in (600, len(content) // 3, len(content) // 3 if name == "matlab_5.mat" else len(content) - 100):
        path.write_bytes(content[:length])
        assert len(refused(path)) > 10
    path.write_bytes(b"")
    assert "it is empty" in refused(path)


def test_damage_is_told_when_it_is_met(tmp_path: Path, read: Callable[..., Raw]) -> None:
    import h5py

    path = Path(shutil.copy(FILES / "matlab_73.mat", tmp_path))
    with h5py.File(path) as file:
        at = file["KSpace"].id.get_chunk_info(0).byte_offset + 512  # MATLAB's own bytes come before
    content = bytearray(path.read_bytes())
    content[at : at + 100] = bytes(100)
    path.write_bytes(content)
    raw = read(path)
    with pytest.raises(BadInput, match="KSpace is damaged") as caught:
        numbers(raw.measured)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("name", KNOWN)
def test_committed_files_are_small(name: str) -> None:
    assert (FILES / name).stat().st_size < 30_720
