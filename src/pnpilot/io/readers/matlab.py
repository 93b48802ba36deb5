"""MATLAB's files: those of version 7.3, which are HDF5, and older ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BadInput, require
from ..raw import Lazy, Raw, Scratch, Stored
from . import _hdf5, _mat5
from ._diffraction import diffraction
from ._trajectory import along_trajectory
from .base import READERS, Reader

KSPACE = ("kspace", "ksp", "k_space", "kdata", "kspacedata", "rawdata", "raw", "data")
MAPS = ("maps", "sens", "sensitivities", "smaps", "csm", "coilmaps")
MASK = ("mask", "sampling", "samp")
NOISE = ("noise",)
NUMERIC: dict[str, np.dtype] = {
    **{name: np.dtype(name) for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")},
    **{"logical": np.dtype("uint8"), "single": np.dtype("complex64"), "double": np.dtype("complex128")},
}
"""MATLAB's classes of numbers, with the largest type that their numbers may have."""


@dataclass(frozen=True)
class Variable:
    """A variable of a file, not yet read."""

    shape: tuple[int, ...]
    kind: str
    """MATLAB's class."""
    load: Callable[[], Lazy]

    @property
    def image(self) -> bool:
        """Whether it could be one: numbers along two axes at least."""
        return self.kind in NUMERIC and sum(length > 1 for length in self.shape) > 1


def is_matlab(path: Path, head: bytes) -> bool:
    """Whether a file is MATLAB's; by their name alone, those whose beginning says nothing."""
    return head.startswith(b"MATLAB ") or (path.name.lower().endswith(".mat") and not head.startswith(_hdf5.SIGNATURE))


@READERS.register("matlab")
class Matlab(Reader):
    """MATLAB's .mat files of all versions, those in HDF5 too."""

    suffixes = (".mat",)
    known_by = "the first bytes, MATLAB 5.0 or 7.3, or the name"
    shape = "a variable called kspace or alike, or the only complex one, in MATLAB's order of axes; names are unknown"
    units = "arbitrary"
    extra = "mri"

    @classmethod
    def knows(cls, path: Path, head: bytes) -> bool:
        """By its first bytes, or by its name."""
        return is_matlab(path, head)

    @classmethod
    def fragile(cls, head: bytes) -> bool:
        """HDF5, which version 7.3 is. Older ones are looked over before SciPy reads them."""
        return _hdf5.is_hdf5(head)

    def read(self, path: Path, scratch: Scratch, key: str | None = None) -> Raw:
        """Open the file."""
        with path.open("rb") as stream:
            newer = _hdf5.is_hdf5(stream.read(4096))
        if not newer:
            return _found(Raw(None, "matlab"), _older(path, scratch), key)
        return _hdf5.read(path, lambda file: _found(Raw(None, "hdf5", closes=file.close), _newer(file), key))


def _found(raw: Raw, variables: Mapping[str, Variable], key: str | None) -> Raw:
    shapes = {name: variable.shape for name, variable in variables.items() if variable.kind in NUMERIC}
    if (found := diffraction(shapes, lambda name: variables[name].load().dtype, key)) is not None:
        alpha = None if found.alpha is None else _stored(variables, found.alpha)
        return found.raw(raw, _stored(variables, found.measured), _stored(variables, found.masks), alpha)
    if (way := along_trajectory(shapes, key)) is not None:
        raw = way.raw(raw, lambda name: _stored(variables, name))
        raw.maps, raw.noise = (_optional(variables, names) for names in (MAPS, NOISE))
        return raw
    alone = key is None and bool(variables) and all(name.lower() in MAPS + MASK + NOISE for name in variables)
    name = "" if alone else _chosen(variables, key)
    if name and name != key and name.lower() != "kspace":
        raw.notes.append(f"k-space is the variable {name}")
    raw.measured = _stored(variables, name) if name else None
    raw.maps, raw.mask, raw.noise = (_optional(variables, names, name) for names in (MAPS, MASK, NOISE))
    return raw


def _optional(variables: Mapping[str, Variable], names: tuple[str, ...], taken: str = "") -> Stored | None:
    other = _named(variables, names)
    return None if other is None or other == taken else _stored(variables, other)


def _chosen(variables: Mapping[str, Variable], key: str | None) -> str:
    if key is not None:
        require(key in variables, f"there is no variable {key!r} in it; there are {_listed(variables)}")
        return key
    name = _named(variables, KSPACE)
    if name is not None:
        return name
    others = [name for name in variables if variables[name].image and name.lower() not in MAPS + MASK + NOISE]
    complex_ones = [name for name in others if variables[name].load().dtype.kind == "c"]
    if len(complex_ones) == 1:
        return complex_ones[0]
    what = "several variables are complex" if complex_ones else "no variable is complex"
    raise BadInput(f"{what} and none is called kspace; name one by its key: {_listed(variables)}")


def _named(variables: Mapping[str, Variable], names: tuple[str, ...]) -> str | None:
    """The variable with the first of these names that there is, in capitals or not."""
    lower = {name.lower(): name for name in variables if variables[name].kind in NUMERIC}
    return next((lower[name] for name in names if name in lower), None)


def _listed(variables: Mapping[str, Variable]) -> str:
    """What a file holds, for a message."""
    known = [f"{name} {'×'.join(map(str, variables[name].shape))} {variables[name].kind}" for name in variables]
    return ", ".join(known[:20] + ["…"] * (len(known) > 20)) or "none"


def _stored(variables: Mapping[str, Variable], name: str) -> Stored:
    kind = variables[name].kind
    require(kind in NUMERIC, f"{name} is of MATLAB's class {kind}, where full arrays of numbers are needed")
    return Stored(variables[name].load())


def _older(path: Path, scratch: Scratch) -> dict[str, Variable]:
    """The variables of a file before version 7.3. Only those that are loaded are looked into."""

    def loader(name: str, shape: tuple[int, ...], kind: str) -> Callable[[], Lazy]:
        @functools.cache
        def load() -> Lazy:
            array = _mat5.loaded(path, name, shape, NUMERIC[kind])
            kept = scratch.array(array.shape, array.dtype)
            kept[...] = array
            return kept

        return load

    variables: dict[str, Variable] = {}
    for name, shape, kind in _mat5.listed(path):  # of two variables of one name, SciPy loads the first
        variables.setdefault(name, Variable(shape, kind, loader(name, shape, kind)))
    return variables


def _newer(file: Any) -> dict[str, Variable]:
    """The variables of a file of version 7.3, which stay in it."""
    import h5py

    def loader(name: str) -> Callable[[], Lazy]:
        return lambda: _hdf5.Reversed(_hdf5.numbers(_hdf5.find(file, name), name))

    variables = {}
    for name in list(file)[: _hdf5.MOST_NAMES]:
        # Names with # are MATLAB's own; a link elsewhere is refused only if it is the one that is wanted.
        if not name.startswith("#"):
            linked = isinstance(file.get(name, getlink=True), h5py.ExternalLink)
            node = None if linked else _hdf5.find(file, name)
            shape = tuple(getattr(node, "shape", None) or ())[::-1]
            variables[name] = Variable(shape, "link" if linked else _class(node), loader(name))
    return variables


def _class(node: Any) -> str:
    """MATLAB's class of a variable, or what comes closest in a file that MATLAB did not write."""
    if "MATLAB_sparse" in node.attrs:
        return "sparse"
    if "MATLAB_empty" in node.attrs:
        return "empty array"
    if "MATLAB_class" in node.attrs:
        kind = node.attrs["MATLAB_class"]
        return kind.decode(errors="replace") if isinstance(kind, bytes) else str(kind)
    numeric = hasattr(node, "dtype") and (node.dtype.kind in "biufc" or _hdf5.is_complex(node))
    return "double" if numeric else "struct"
