"""HDF5 files with k-space as one array, above all those of the fastMRI data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BadInput, require
from ..geometry import Geometry
from ..raw import COIL, SLICE, Raw, Scratch, Stored
from . import _hdf5, _mrd_header
from ._diffraction import diffraction
from ._mrd_lines import group_of
from ._trajectory import along_trajectory
from .base import READERS, Reader
from .data_exchange import is_data_exchange
from .matlab import is_matlab

AXES = {3: (SLICE, "x", "y"), 4: (SLICE, COIL, "x", "y")}
"""How fastMRI's files with one coil and with several are laid out: the readout comes before the lines."""
MAPS = ("sensitivity_maps", "maps")


@READERS.register("fastmri")
class FastMRI(Reader):
    """fastMRI's HDF5 files, and others with k-space as one complex array, or with coded diffraction."""

    suffixes = (".h5", ".hdf5")
    known_by = "HDF5 that no other reader knows"
    shape = "kspace (slice, coil, x, y), or (slice, x, y) with one coil; with `key`, any array, in unknown order"
    units = "arbitrary"

    @classmethod
    def knows(cls, path: Path, head: bytes) -> bool:
        """HDF5, unless it is laid out as another reader knows it."""
        if not _hdf5.is_hdf5(head) or is_matlab(path, head):
            return False
        return group_of(path) is None and not is_data_exchange(path)

    @classmethod
    def fragile(cls, head: bytes) -> bool:
        """All HDF5."""
        return _hdf5.is_hdf5(head)

    def read(self, path: Path, scratch: Scratch, key: str | None = None) -> Raw:  # noqa: ARG002
        """Open the file."""
        return _hdf5.read(path, lambda file: _read(file, key))


def _read(file: Any, key: str | None) -> Raw:
    if key is None and list(_hdf5.datasets(file)) == ["mask"]:  # it goes with k-space in another file
        return Raw(None, "hdf5", mask=Stored(_hdf5.numbers(_there(file, "mask"), "mask")), closes=file.close)
    arrays = _hdf5.datasets(file)
    shapes = {name: tuple(array.shape or ()) for name, array in arrays.items()}
    if (found := diffraction(shapes, lambda name: _hdf5.numbers(arrays[name], name).dtype, key)) is not None:
        alpha = None if found.alpha is None else Stored(_hdf5.few(_there(file, found.alpha), found.alpha))
        measured, masks = (Stored(_hdf5.numbers(_there(file, own), own)) for own in (found.measured, found.masks))
        return found.raw(Raw(None, "hdf5", closes=file.close), measured, masks, alpha)
    if (way := along_trajectory(shapes, key)) is not None:
        raw = Raw(None, "hdf5", closes=file.close)
        raw.maps, raw.noise = (_part(file, names, None, ()) for names in (MAPS, ("noise",)))
        return way.raw(raw, lambda name: Stored(_hdf5.numbers(_there(file, name), name)))
    name = _chosen(file, key)
    data = _hdf5.numbers(_there(file, name), name)
    raw = Raw(None, "hdf5", closes=file.close)
    header = _header(file)
    axes = _axes(file, name, data, header is not None)
    raw.measured = Stored(data, axes)
    raw.pictures = name.startswith("reconstruction_") and data.dtype.kind != "c"
    if header is None and axes is not None:
        raw.notes.append(f"axes are taken as {', '.join(axes)}, as in fastMRI's files")
    raw.mask = _part(file, ("mask",), axes, data.shape)
    raw.maps = _part(file, MAPS, axes, data.shape)
    noise = _hdf5.find(file, "noise")
    if noise is not None:
        scan = _hdf5.numbers(noise, "noise")
        raw.noise = Stored(scan, (COIL, "sample") if len(scan.shape) == 2 else None)
    if header is not None and axes is not None and not raw.pictures:
        _sizes(raw, _mrd_header.encoding(header), axes, data.shape)
    return raw


def _chosen(file: Any, key: str | None) -> str:
    if key is not None or _hdf5.find(file, "kspace") is not None:
        return key or "kspace"
    found = _hdf5.datasets(file)
    complex_ones = [name for name in found if _hdf5.is_complex(found[name])]
    if len(complex_ones) == 1:
        return complex_ones[0]
    what = "no array is called kspace" if not complex_ones else "several arrays are complex and none is called kspace"
    raise BadInput(f"{what}; name one by its key: {listed(found)}")


def listed(found: dict[str, Any]) -> str:
    """What a file holds, for a message."""
    names = [f"{name} {'×'.join(map(str, found[name].shape or ()))}".strip() for name in list(found)[:20]]
    return ", ".join(names + ["…"] * (len(found) > 20)) or "it holds none"


def _there(file: Any, name: str) -> Any:
    dataset = _hdf5.find(file, name)
    require(dataset is not None, f"there is no array {name!r} in it; there are {listed(_hdf5.datasets(file))}")
    return dataset


def _axes(file: Any, name: str, data: Any, fastmri: bool) -> tuple[str, ...] | None:
    """Those of fastMRI; a file without its header may mean anything by three axes."""
    if name.startswith("reconstruction_") and fastmri and len(data.shape) == 3:
        return AXES[3]
    kspace = data if name == "kspace" else _hdf5.find(file, "kspace")
    same = kspace is not None and kspace.shape == data.shape and data.dtype.kind == "c"
    return AXES.get(len(data.shape)) if same and (fastmri or len(data.shape) == 4) else None


def _part(file: Any, names: tuple[str, ...], axes: tuple[str, ...] | None, shape: tuple[int, ...]) -> Stored | None:
    """The first array of these names. It has the last axes of k-space, if it has the lengths of those."""
    for name in names:
        dataset = _hdf5.find(file, name)
        if dataset is not None:
            data = _hdf5.numbers(dataset, name)
            fits = axes is not None and tuple(data.shape) == tuple(shape[-len(data.shape) :])
            return Stored(data, axes[-len(data.shape) :] if axes is not None and fits else None)
    return None


def _header(file: Any) -> Any:
    dataset = _hdf5.find(file, "ismrmrd_header")
    if dataset is None:
        return None
    return _mrd_header.parsed(_hdf5.text(dataset, "ismrmrd_header", _mrd_header.LARGEST))


def _sizes(raw: Raw, encoding: Any, axes: tuple[str, ...], shape: tuple[int, ...]) -> None:
    """The final size, and how large pixels are. fastMRI's headers do not say where the slices lie."""
    raw.matrix = _mrd_header.final(encoding, {axis: shape[axes.index(axis)] for axis in "xy"})
    raw.oversampled = "x" if "x" in raw.matrix else None
    sizes = [_mrd_header.spacing(encoding, axis) for axis in "xyz"]
    if all(size > 0 for size in sizes):
        raw.geometry = Geometry(dict(zip(("x", "y", SLICE), np.diag(sizes), strict=True)), np.zeros(3), oriented=False)
        raw.notes.append("pixel sizes are known, orientation and position are not: images are centred, axes as stored")
