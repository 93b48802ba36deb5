"""DataExchange: tomograms of synchrotrons in HDF5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...errors import require
from ..raw import SLICE, Raw, Scratch, Stored
from . import _hdf5
from .base import READERS, Reader

AXES = {"theta": "angle", "y": SLICE, "x": "x"}
"""What the format calls its axes, and what they are called here."""
BESIDE = {"flats": "exchange/data_white", "darks": "exchange/data_dark"}
ANGLES = "exchange/theta"
MOST_ANGLES = 100_000


@READERS.register("data-exchange")
class DataExchange(Reader):
    """DataExchange: tomograms in HDF5, with flat and dark fields and angles."""

    suffixes = (".h5", ".hdf5", ".hdf", ".nxs")
    known_by = "HDF5 with an array exchange/data"
    shape = "exchange/data (angle, slice, x), and data_white, data_dark, theta beside it; with `key`, another array"
    units = "counts; or, without data_white, the share that passed, or line integrals"

    @classmethod
    def knows(cls, path: Path, head: bytes) -> bool:
        """HDF5 with an array at that place."""
        return _hdf5.is_hdf5(head) and is_data_exchange(path)

    @classmethod
    def fragile(cls, head: bytes) -> bool:
        """All HDF5."""
        return _hdf5.is_hdf5(head)

    def read(self, path: Path, scratch: Scratch, key: str | None = None) -> Raw:  # noqa: ARG002
        """Open the file."""
        return _hdf5.read(path, lambda file: _read(file, key or "exchange/data"))


def is_data_exchange(path: Path) -> bool:
    """Whether an HDF5 file is laid out so."""
    try:
        with _hdf5.opened(path) as file:
            return _is_array(_hdf5.find(file, "exchange/data"))
    except Exception:  # whatever is wrong is told by the reader that takes the file
        return False


def _is_array(found: Any) -> bool:
    import h5py

    return isinstance(found, h5py.Dataset)


def _read(file: Any, name: str) -> Raw:
    dataset = _hdf5.find(file, name)
    require(dataset is not None, f"there is no array {name!r} in it")
    raw = Raw(_projections(dataset, name), "hdf5", kind="tomography", closes=file.close)
    for what, place in BESIDE.items():
        if (found := _hdf5.find(file, place)) is not None:
            raw.beside[what] = _projections(found, place)
    if (theta := _hdf5.find(file, ANGLES)) is not None:
        raw.beside["angles"] = _angles(theta)
    return raw


def _projections(dataset: Any, name: str) -> Stored:
    data = _hdf5.numbers(dataset, name)
    require(data.dtype.kind in "fiu", f"{name} holds {data.dtype}, where real numbers are needed")
    require(len(data.shape) == 3, f"{name} has {len(data.shape)} axes; projections have three: angle, slice, x")
    return Stored(data, _axes(dataset))


def _axes(dataset: Any) -> tuple[str, ...]:
    """As the array says, if it says so in words that are known; most have angle, slice, x."""
    told = dataset.attrs.get("axes", b"")
    told = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
    words = [word.strip().removesuffix("_white").removesuffix("_dark") for word in told.split(":")]
    return tuple(AXES[word] for word in words) if sorted(words) == sorted(AXES) else tuple(AXES.values())


def _angles(dataset: Any) -> Stored:
    """In degrees, unless the file does not say."""
    data = _hdf5.numbers(dataset, ANGLES)
    fits = data.dtype.kind in "fiu" and len(data.shape) == 1 and data.shape[0] <= MOST_ANGLES
    require(fits, f"{ANGLES} is no list of angles, it holds {data.dtype} {tuple(data.shape)}")
    angles, units = np.asarray(data[:], np.float64), dataset.attrs.get("units", b"")
    units = units.decode(errors="replace") if isinstance(units, bytes) else str(units)
    return Stored(np.rad2deg(angles) if units.lower().startswith("rad") else angles, ("angle",))
