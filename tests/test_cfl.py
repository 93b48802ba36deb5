"""BART's files, and slices of coils from files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pnpilot.errors import BadInput
from pnpilot.io.cfl import read_cfl, write_cfl
from pnpilot.io.kspace import read_coils

needs_bart = pytest.mark.skipif(shutil.which("bart") is None, reason="BART is not installed: apt-get install bart")


def numbers(*shape: int) -> np.ndarray:
    parts = np.random.default_rng(0).normal(size=(2, *shape))
    return (parts[0] + 1j * parts[1]).astype(np.complex64)


@settings(max_examples=25, deadline=None)
@given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_what_was_written_is_read(shape: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("cfl") / "name"
    array = numbers(*shape)
    write_cfl(path, array)
    for suffix in ("", ".cfl", ".hdr"):
        assert np.array_equal(read_cfl(path.with_name("name" + suffix)), array)


@needs_bart
def test_bart_reads_our_files_and_we_read_its(tmp_path: Path) -> None:
    array = numbers(6, 5, 1, 3)
    write_cfl(tmp_path / "ours", array)
    commands = [["transpose", "0", "1", "ours", "theirs"], ["slice", "3", "2", "ours", "one"]]
    for command in commands:
        subprocess.run(["bart", *command], cwd=tmp_path, check=True, capture_output=True)
    theirs = read_cfl(tmp_path / "theirs")
    assert np.array_equal(theirs.squeeze(), array.swapaxes(0, 1).squeeze())
    assert np.array_equal(read_cfl(tmp_path / "one.hdr").squeeze(), array[:, :, 0, 2])


@pytest.mark.parametrize("axes", [(6, 5, 1, 3), (1, 6, 5, 3), (6, 1, 5, 3), (1, 6, 5, 3, 1)])
def test_a_slice_of_coils_from_barts_axes(axes: tuple[int, ...], tmp_path: Path) -> None:
    array = numbers(*axes)
    write_cfl(tmp_path / "scan", array)
    expected = np.moveaxis(array.reshape(6, 5, 3), -1, 0)
    assert np.array_equal(read_coils(tmp_path / "scan.cfl").numpy(), expected)
    np.save(tmp_path / "scan.npy", expected)
    assert np.array_equal(read_coils(tmp_path / "scan.npy").numpy(), expected)


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("", "not a readable pair of BART files"),
        ("# Dimensions\nsix five\n", "not a readable pair of BART files"),
        ("# Dimensions\n6 0 3\n", "its header has no sizes"),
        ("# Dimensions\n6 6 6\n", "asks for 1728 bytes, scan.cfl has 240"),
        ("# Dimensions\n" + "9999999 " * 5, "the most are"),
    ],
)
def test_broken_headers_are_told(header: str, told: str, tmp_path: Path) -> None:
    write_cfl(tmp_path / "scan", numbers(6, 5))
    (tmp_path / "scan.hdr").write_text(header)
    with pytest.raises(BadInput, match=told):
        read_cfl(tmp_path / "scan")


@settings(max_examples=30, deadline=None)
@given(content=st.binary(max_size=200))
def test_any_header_is_read_or_told(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("cfl")
    (folder / "scan.hdr").write_bytes(content)
    (folder / "scan.cfl").write_bytes(b"12345678")
    try:
        assert read_cfl(folder / "scan").size == 1
    except BadInput as error:
        assert "not a readable pair of BART files" in str(error)


@pytest.mark.parametrize(
    ("array", "told"),
    [
        (numbers(6, 5), r"has shape \(6, 5\): a slice \(coils, height, width\) is needed"),
        (numbers(3, 6, 1), "a slice"),
        (np.ones((3, 6, 5), np.float32), "holds float32 numbers"),
        (np.full((3, 6, 5), np.nan, np.complex64), "holds NaN or infinite values"),
    ],
)
def test_arrays_that_are_no_slice_are_told(array: np.ndarray, told: str, tmp_path: Path) -> None:
    np.save(tmp_path / "scan.npy", array)
    with pytest.raises(BadInput, match=told):
        read_coils(tmp_path / "scan.npy")


def test_volumes_and_missing_files_are_told(tmp_path: Path) -> None:
    write_cfl(tmp_path / "volume", numbers(6, 5, 4, 3))
    with pytest.raises(BadInput, match="one slice is needed, with two axes of space"):
        read_coils(tmp_path / "volume.cfl")
    for name in ("nothing.cfl", "nothing.npy"):
        with pytest.raises(BadInput, match="is not a readable"):
            read_coils(tmp_path / name)
