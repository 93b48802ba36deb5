"""Arrays of k-space along a trajectory by their names: samples, where they lie, and how much each stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..raw import Raw, Stored

KIND, TRAJECTORY, DENSITY = "noncartesian", "trajectory", "density"
"""The modality, and what the arrays are called in `Raw.beside`."""
NAMES = {
    TRAJECTORY: ("trajectory", "traj", "ktraj", "k_traj", "coord", "coords", "k"),
    DENSITY: ("density", "dcf", "dens", "weights", "w"),
}
MEASURED = ("kspace", "ksp", "k_space", "kdata", "rawdata", "raw", "data", "samples", "signal", "y")


@dataclass(frozen=True)
class Found:
    """The names of such arrays in a file; without the measured one, they go with another file."""

    measured: str | None
    trajectory: str | None
    density: str | None

    def raw(self, raw: Raw, stored: Callable[[str], Stored]) -> Raw:
        """What the file holds, put where it belongs."""
        raw.kind = KIND
        raw.measured = None if self.measured is None else stored(self.measured)
        for kind, name in ((TRAJECTORY, self.trajectory), (DENSITY, self.density)):
            if name is not None:
                raw.beside[kind] = stored(name)
        if self.measured is not None:
            raw.notes.append(f"samples are {self.measured}, along {self.trajectory}")
        return raw


def along_trajectory(shapes: Mapping[str, tuple[int, ...]], key: str | None = None) -> Found | None:
    """The arrays of k-space along a trajectory among those of a file, or None; `key` names the samples."""
    lower = {name.lower(): name for name in shapes}

    def named(wanted: tuple[str, ...]) -> str | None:
        return next((lower[name] for name in wanted if name in lower), None)

    measured = key if key in shapes else named(MEASURED)
    trajectory, density = named(NAMES[TRAJECTORY]), named(NAMES[DENSITY])
    if measured is None:
        alone = all(name in (*NAMES[TRAJECTORY], *NAMES[DENSITY]) for name in lower) and set(lower) != {"k"}
        return Found(None, trajectory, density) if alone and key is None and lower else None
    if trajectory is None or trajectory == measured or not _fit(shapes[trajectory], shapes[measured]):
        return None
    fits = density is not None and _fit(shapes[density], shapes[measured])
    return Found(measured, trajectory, density if fits else None)


def _fit(shape: tuple[int, ...], measured: tuple[int, ...]) -> bool:
    """Whether every axis is one of the data, but for one of two or three components."""
    others = [length for length in shape if length > 1 and length not in measured]
    return bool(max(shape, default=0) > 3 and (not others or (len(others) == 1 and others[0] in (2, 3))))
