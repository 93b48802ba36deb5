"""HDF5 files from anywhere: what lies in another file is never opened, and no size is believed unchecked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BadInput, first_line, require
from ..raw import Lazy, Raw, checked_shape

SIGNATURE = b"\x89HDF\r\n\x1a\n"
STARTS = (0, 512, 1024, 2048)
"""Where an HDF5 file may begin inside a file; MATLAB puts 512 bytes of its own before it."""
MOST_NAMES = 1000
MOST_HOPS = 8


def is_hdf5(head: bytes) -> bool:
    """Whether the first bytes of a file are those of an HDF5 file."""
    return any(head.startswith(SIGNATURE, start) for start in STARTS)


def opened(path: Path) -> Any:
    """The file, to be read only; it is not locked, since it may lie on a disk that cannot lock."""
    import h5py

    try:
        return h5py.File(path, "r", locking=False)
    except OSError as error:
        raise BadInput(f"it is not a whole HDF5 file: {first_line(error)}") from error


def read(path: Path, reading: Callable[[Any], Raw]) -> Raw:
    """What is read from the file, which stays open for it, unless reading fails."""
    file = opened(path)
    try:
        return reading(file)
    except BaseException:
        file.close()
        raise


def find(file: Any, name: str, group: Any = None, hops: int = 0) -> Any:
    """The dataset or group of that name, or None. Links to other files are refused, and not followed."""
    import h5py

    node = file if group is None or name.startswith("/") else group
    for part in filter(None, name.split("/")):
        if not isinstance(node, h5py.Group):
            return None
        link = node.get(part, getlink=True)
        require(not isinstance(link, h5py.ExternalLink), f"{name!r} is a link to another file, which is not opened")
        if isinstance(link, h5py.SoftLink):
            require(hops < MOST_HOPS, f"{name!r} is a link that leads in a circle")
            target = find(file, link.path, node, hops + 1)
            require(target is not None, f"{name!r} is a link that leads nowhere")
            node = target
        elif isinstance(link, h5py.HardLink):
            node = node[part]
        else:
            return None
    return node


def datasets(file: Any) -> dict[str, Any]:
    """All datasets by their paths; neither soft links nor links to other files are followed."""
    import h5py

    found: dict[str, Any] = {}
    seen = 0

    def visit(name: str, node: Any) -> bool | None:
        nonlocal seen
        seen += 1
        if isinstance(node, h5py.Dataset):
            found[name] = node
        return True if seen >= MOST_NAMES else None

    file.visititems(visit)
    return found


def is_complex(dataset: Any) -> bool:
    """Whether its numbers are complex, as h5py or MATLAB writes them."""
    return dataset.dtype.kind == "c" or _is_pair(dataset.dtype)


def numbers(dataset: Any, what: str) -> Lazy:
    """The dataset as an array of numbers that is read part by part, after all that it claims was checked."""
    import h5py

    require(isinstance(dataset, h5py.Dataset), f"{what} is not an array of numbers but a group")
    require(dataset.shape != (), f"{what} is a single value, where an array is needed")
    pair = _is_pair(dataset.dtype)
    kind = "text or objects" if dataset.dtype.kind in "OSV" else f"{dataset.dtype}"
    require(pair or dataset.dtype.kind in "biufc", f"{what} holds {kind}, where numbers are needed")
    check_storage(dataset, what)
    return Numbers(dataset, what)


def few(dataset: Any, what: str) -> np.ndarray:
    """A number, or a few."""
    if getattr(dataset, "shape", None) != ():
        return np.asarray(numbers(dataset, what)[...])
    require(dataset.dtype.kind in "iuf", f"{what} holds {dataset.dtype}, where a number is needed")
    check_storage(dataset, what)
    return np.asarray(dataset[()]).reshape(1)


def check_storage(dataset: Any, what: str) -> None:
    """Refuse a dataset whose content lies in other files, or that claims more than this file holds for it."""
    require(not dataset.is_virtual and not dataset.external, f"{what} lies in another file, which is not opened")
    require(dataset.shape is not None, f"{what} is empty")
    stored = dataset.id.get_storage_size()
    checked_shape(dataset.shape or (1,), dataset.dtype, stored, what)
    if dataset.chunks is not None:  # one is unpacked as a whole, and may be larger than the array
        checked_shape(dataset.chunks, dataset.dtype, stored, f"a block of {what}")


def text(dataset: Any, what: str, most: int) -> str:
    """A text, from a dataset with nothing but one."""
    import h5py

    require(isinstance(dataset, h5py.Dataset) and dataset.size == 1, f"{what} is not a text")
    require(h5py.check_string_dtype(dataset.dtype) is not None, f"{what} is not a text")
    check_storage(dataset, what)
    value = np.asarray(dataset[()]).ravel()[0]
    value = value if isinstance(value, bytes) else str(value).encode()
    require(len(value) <= most, f"{what} has {len(value)} bytes; the most are {most}")
    try:
        return value.rstrip(b"\0").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{what} is not a text in UTF-8") from error


def _is_pair(dtype: np.dtype) -> bool:
    fields = dict(dtype.fields or {})
    return tuple(fields) == ("real", "imag") and all(field[0].kind in "iuf" for field in fields.values())


class Numbers:
    """A dataset whose damage is told as it is met; pairs of real and imag, as MATLAB has them, become complex."""

    def __init__(self, dataset: Any, what: str) -> None:
        self.dataset, self.what = dataset, what
        self.shape: tuple[int, ...] = dataset.shape
        self.pair = _is_pair(dataset.dtype)
        self.dtype = np.result_type(dataset.dtype["real"], np.complex64) if self.pair else dataset.dtype

    def __getitem__(self, index: Any) -> Any:
        try:
            found = self.dataset[index]
        except OSError as error:
            raise BadInput(f"{self.dataset.file.filename}: {self.what} is damaged: {first_line(error)}") from error
        return (found["real"] + np.complex64(1j) * found["imag"]).astype(self.dtype) if self.pair else found


class Reversed:
    """An array with its axes in reverse: MATLAB and HDF5 count them from opposite ends."""

    def __init__(self, data: Lazy) -> None:
        self.data = data
        self.shape = tuple(data.shape[::-1])
        self.dtype = data.dtype

    def __getitem__(self, index: Any) -> Any:
        index = index if isinstance(index, tuple) else (index,)
        if Ellipsis in index:
            at = index.index(Ellipsis)
            missing = len(self.shape) - len(index) + 1
            index = index[:at] + (slice(None),) * missing + index[at + 1 :]
        index = index + (slice(None),) * (len(self.shape) - len(index))
        return np.transpose(self.data[index[::-1]])
