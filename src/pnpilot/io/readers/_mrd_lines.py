"""The acquisitions of an MRD file: where they are, what kinds there are, and where each line belongs in k-space."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BadInput, require
from . import _hdf5

COUNTERS = (
    "kspace_encode_step_1",
    "kspace_encode_step_2",
    "average",
    "slice",
    "contrast",
    "phase",
    "repetition",
    "set",
)
HEAD = np.dtype(
    [("flags", "u8"), ("encoding_space_ref", "i4"), ("sample_time_us", "f4")]
    + [(name, "i4") for name in ("number_of_samples", "active_channels", "discard_pre", "discard_post")]
    + [("trajectory_dimensions", "i4")]
    + [("center_sample", "i4"), *((name, "i4") for name in COUNTERS)]
    + [(name, "f4", (3,)) for name in ("position", "read_dir", "phase_dir", "slice_dir")]
)
"""What is kept of an acquisition's head."""
BLOCK_BYTES = 2**24
NEITHER = (
    *("NAVIGATION_DATA", "PHASECORR_DATA", "HPFEEDBACK_DATA", "DUMMYSCAN_DATA", "RTFEEDBACK_DATA"),
    *("SURFACECOILCORRECTIONSCAN_DATA", "PHASE_STABILIZATION_REFERENCE", "PHASE_STABILIZATION"),
)
"""Flags of lines that measure something else than the image."""


def group_of(path: Path, key: str | None = None) -> str | None:
    """The group of an HDF5 file that holds acquisitions, or None."""
    try:
        with _hdf5.opened(path) as file:
            names = [key] if key is not None else sorted(list(file)[:100], key=lambda name: name != "dataset")
            return next((name for name in names if _holds_lines(file, name)), None)
    except Exception:  # whatever is wrong is told by the reader that takes the file
        return None


def _holds_lines(file: Any, name: str) -> bool:
    import h5py

    group = file.get(name, getlink=True)
    if not isinstance(group, h5py.HardLink):
        return False
    xml, data = (_hdf5.find(file, f"{name}/{part}") for part in ("xml", "data"))
    return isinstance(xml, h5py.Dataset) and isinstance(data, h5py.Dataset) and "head" in (data.dtype.names or ())


def heads(data: Any) -> np.ndarray:
    """The heads of all acquisitions."""
    import h5py

    require(isinstance(data, h5py.Dataset) and len(data.shape) == 1, "its acquisitions are not a list")
    _hdf5.check_storage(data, "the list of its acquisitions")
    require(_apart(data.dtype), "its acquisitions are not laid out as ISMRMRD has them")
    lines = h5py.check_vlen_dtype(data.dtype["data"])
    require(lines is not None and np.dtype(lines) == np.float32, "its acquisitions do not hold complex64 numbers")
    found = np.empty(data.shape, HEAD)
    try:
        for start, block in _blocks(data):
            head, part = block["head"], found[start : start + len(block)]
            for name in HEAD.names or ():
                part[name] = (head["idx"] if name in COUNTERS else head)[name]
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise BadInput("its acquisitions are not laid out as ISMRMRD has them") from error
    return found


def _apart(dtype: np.dtype) -> bool:
    """Whether no two fields share bytes: h5py would take numbers for addresses, and crash."""
    end = 0
    for field, start, *_ in sorted(dict(dtype.fields or {}).values(), key=lambda field: field[1]):
        if start < end or not _apart(field):
            return False
        end = start + field.itemsize
    return end <= dtype.itemsize


def _blocks(data: Any) -> Iterator[tuple[int, np.ndarray]]:
    """All acquisitions, some at a time, with the number of the first.

    They are read whole: h5py reads the lines even where only heads are asked for, and then forgets to free them.
    """
    together = int(max(1, BLOCK_BYTES * len(data) // data.file.id.get_filesize()))
    for start in range(0, len(data), together):
        yield start, data[start : start + together]


def flagged(heads: np.ndarray, *names: str) -> np.ndarray:
    """Which acquisitions have one of these flags."""
    from ismrmrd import constants

    bits = sum(1 << (getattr(constants, f"ACQ_IS_{name}") - 1) for name in names)
    return heads["flags"] & np.uint64(bits) != 0


def lines(data: Any, heads: np.ndarray, wanted: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The wanted acquisitions by their numbers, each (coil, sample): without what is discarded, and read forwards."""
    numbers = map(int, np.flatnonzero(wanted))
    for number, (values, head, reverse) in zip(numbers, stored(data, heads, wanted, "data"), strict=True):
        yield number, _line(values, head, reverse)


def stored(data: Any, heads: np.ndarray, wanted: np.ndarray, field: str) -> Iterator[tuple[np.ndarray, Any, bool]]:
    """What the wanted acquisitions hold in a field, with their heads, and whether they were read backwards."""
    reverse = flagged(heads, "REVERSE")
    for start, block in _blocks(data):
        for number in map(int, start + np.flatnonzero(wanted[start : start + len(block)])):
            yield block[field][number - start], heads[number], bool(reverse[number])


def _line(numbers: np.ndarray, head: np.ndarray, reverse: bool) -> np.ndarray:
    coils, samples = int(head["active_channels"]), int(head["number_of_samples"])
    require(
        len(numbers) == 2 * coils * samples,
        f"a line of {coils} coils and {samples} samples holds {len(numbers) // 2} numbers",
    )
    line = np.ascontiguousarray(numbers, np.float32).view(np.complex64).reshape(coils, samples)
    line = line[:, int(head["discard_pre"]) : samples - int(head["discard_post"])]
    return line[:, ::-1] if reverse else line


def one(values: np.ndarray, what: str) -> int:
    """The value that all lines share."""
    found = np.unique(values)
    require(len(found) == 1, f"its lines differ in their number of {what}: {', '.join(map(str, found[:5]))}")
    require(found[0] > 0, f"its lines have no {what}")
    return int(found[0])


def starts(heads: np.ndarray, length: int) -> np.ndarray:
    """Where each line begins on a readout of that length: its centre belongs at length // 2."""
    whole, centre = heads["number_of_samples"], heads["center_sample"]
    # The numbers are those of the line as it is read forwards, which turns what was discarded around as well.
    before = np.where(flagged(heads, "REVERSE"), heads["discard_post"], heads["discard_pre"])
    kept = whole - heads["discard_pre"] - heads["discard_post"]
    require(int(kept.min()) > 0, "a line of it discards all of its samples")
    first = length // 2 - centre + before
    # Some writers leave the centre at 0.
    first = np.where((centre == 0) & (first + kept > length), length // 2 - whole // 2 + before, first)
    require(
        bool((first >= 0).all() and (first + kept <= length).all()),
        f"lines of {int(kept.max())} samples around sample {int(centre.max())} do not fit into an encoded matrix "
        f"of {length}",
    )
    return first


def places(counters: np.ndarray, length: int, limit: Any, axis: str) -> np.ndarray:
    """Where each line lies on an axis of that length: the header names the counter of its centre."""
    centre = length // 2 if limit is None else limit.center
    require(isinstance(centre, int), f"its XML header has no centre of {axis} but {centre!r}")
    found = counters.astype(np.int64) - centre + length // 2
    if centre == 0 and int(found.max()) >= length:  # some writers leave it at 0
        found = counters.astype(np.int64)
    outside = counters[(found < 0) | (found >= length)]
    require(
        len(outside) == 0,
        f"its line {outside[0] if len(outside) else 0} along {axis} does not fit into an encoded matrix of {length}",
    )
    return found
