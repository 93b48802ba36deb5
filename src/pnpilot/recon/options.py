"""What a user may ask of a reconstruction from files. Everything has a default that is worked out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..errors import BadInput, UnknownName

FILES = ("mask", "maps", "noise", "psf", "trajectory", "density", "angles")
"""Options that name a file with what the measurement's own lacks."""
GIVEN = frozenset({*FILES, "centre", "matrix"})
"""Those, and numbers of the same use."""


@dataclass(frozen=True)
class Options:
    """How files are understood, and what is done on the way."""

    axes: tuple[str, ...] | str | None = None
    """Names of the axes, where the format does not tell, as "slice,coil,y,x"."""
    key: str | None = None
    """Which array is meant, in files that hold several."""
    mask: Path | None = None
    maps: Path | None = None
    noise: Path | None = None
    psf: Path | None = None
    """Point-spread function of a picture."""
    trajectory: Path | None = None
    """Where in k-space the samples lie."""
    density: Path | None = None
    """How much of k-space each of them stands for."""
    angles: Path | None = None
    """Of the views of a tomogram."""
    centre: float | None = None
    """The detector pixel onto which its axis of rotation falls."""
    matrix: int | None = None
    """How many pixels a side of the image has, where a trajectory does not tell."""
    simulate: str | None = None
    """Measure finished images anew, for example "radial x4"."""
    seed: int = 0
    without: frozenset[str] = field(default_factory=frozenset)
    always: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        _ = self.names
        for name in sorted(self.without | self.always):
            if name not in (known := steps()):
                raise UnknownName(f"unknown step {name!r}; known: {', '.join(known)}")
        if self.matrix is not None and not 8 <= self.matrix <= 2048:
            raise BadInput(f"--matrix is from 8 to 2048 pixels along a side, got {self.matrix}")
        for name in sorted(self.always - {"whitening"}):
            raise BadInput(f"{name} is done wherever there is a reason for it: only whitening can be forced")

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the axes."""
        return parsed(self.axes) if isinstance(self.axes, str) else self.axes

    @property
    def files(self) -> dict[str, Path]:
        """The files that bring what the measurement's own lacks, by option."""
        return {name: path for name in FILES if (path := getattr(self, name)) is not None}

    def skips(self, step: str) -> bool:
        """Whether a step was switched off."""
        return step in self.without


def steps() -> dict[str, str]:
    """What is done on the way, by all modalities."""
    from .modalities import MODALITIES

    return dict(sorted((step, told) for kind in MODALITIES.entries() for step, told in kind.steps.items()))


def parsed(text: str) -> tuple[str, ...]:
    """'slice,coil,y,x' as names."""
    names = tuple(word.strip().lower() for word in text.replace(" ", ",").split(",") if word.strip())
    if not all(name.isidentifier() for name in names) or len(names) < 2:
        raise BadInput(f"--axes takes names as in slice,coil,y,x, got {text!r}")
    return names
