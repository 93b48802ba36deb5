"""Coil maps from a file, laid out like the k-space that they belong to."""

from __future__ import annotations

import numpy as np

from ..errors import require
from ..io.raw import COIL, SET, SLICE, Stored
from .axes import nameless
from .kspace import Kspace
from .sampling import middle_part


class GivenMaps:
    """The maps of each image: its own, or the same for all."""

    def __init__(self, given: Stored, kspace: Kspace, oversampled: str | None) -> None:
        """`oversampled` is the axis along which maps may be of the whole field of view, and k-space of its middle."""
        self.kspace, self.oversampled = kspace, oversampled
        found = Kspace.of(Stored(given.data, self._names(given)))
        known = set(found.plane) == set(kspace.plane)
        self.maps = Kspace(found.data, found.axes, kspace.plane if known else found.plane)
        require(
            len(self.maps) == 1 or self.maps.goes_with(kspace),
            f"there are coil maps for {len(self.maps)} images, and {len(kspace)} images",
        )

    def __call__(self, number: int, kspace: np.ndarray) -> np.ndarray:
        """Maps (sets, coils, H, W) for an image with k-space (coils, H, W)."""
        maps = self.maps[self.maps.beside(self.kspace, number) if len(self.maps) > 1 else 0]
        coils, *wanted = kspace.shape
        require(maps.shape[1] == coils, f"the maps are of {maps.shape[1]} coils, the data of {coils}")
        for name, have, want in zip(self.kspace.plane, maps.shape[2:], wanted, strict=True):
            fits = have == want or (have > want and name == self.oversampled)
            require(fits, f"the maps have {have} pixels along {name}, k-space has {want} samples")
        return np.ascontiguousarray(middle_part(maps, *wanted))

    def _names(self, given: Stored) -> tuple[str, ...]:
        if given.axes is not None:
            # An axis of k-space that was transformed counts images by now.
            sliced = {name.removesuffix(f"-{SLICE}"): name for name in self.kspace.counting}
            named = enumerate(zip(given.axes, given.data.shape, strict=True))
            return tuple(sliced.get(name, name) if size > 1 else nameless(at) for at, (name, size) in named)
        shape, plane, counting = given.data.shape, self.kspace.plane, self.kspace.counting
        as_data = tuple(name for name in self.kspace.axes if name in (*counting, COIL, *plane))
        usual = [(COIL, *plane), (*counting, COIL, *plane), (SET, COIL, *plane), (*counting, SET, COIL, *plane)]
        usual += [as_data, tuple(name for name in as_data if name not in counting)]
        fitting = [names for names in usual if len(names) == len(shape)]
        sizes = "(coil, y, x), (set, coil, y, x) or with slices before them"
        require(bool(fitting), f"coil maps have shape {shape}: {sizes}")
        return max(fitting, key=lambda names: self._alike(names, shape))

    def _alike(self, names: tuple[str, ...], shape: tuple[int, ...]) -> int:
        """How many axes have the length that k-space has."""
        return sum(self.kspace.lengths.get(name) == length for name, length in zip(names, shape, strict=True))
