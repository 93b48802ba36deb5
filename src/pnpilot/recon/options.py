"""What a user may ask of a reconstruction from files. Everything has a default that is worked out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..errors import BadInput, UnknownName

STEPS = {
    "oversampling": "cut off the part of the field of view that was read out in excess",
    "whitening": "decorrelate the noise of the coils; by default with a noise scan, or where coils differ much",
    "compression": "combine more than 16 coils to 16",
    "phase": "hold images to their phase at low resolution, where k-space was measured on one side (partial Fourier)",
    "crop": "cut images to the size that the scanner asked for",
}
"""What is done on the way, where it applies."""


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
    simulate: str | None = None
    """Measure finished images anew, for example "radial x4"."""
    seed: int = 0
    without: frozenset[str] = field(default_factory=frozenset)
    always: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        _ = self.names
        for name in sorted(self.without | self.always):
            if name not in STEPS:
                raise UnknownName(f"unknown step {name!r}; known: {', '.join(STEPS)}")
        for name in sorted(self.always - {"whitening"}):
            raise BadInput(f"{name} is done wherever there is a reason for it: only whitening can be forced")

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the axes."""
        return parsed(self.axes) if isinstance(self.axes, str) else self.axes

    def skips(self, step: str) -> bool:
        """Whether a step was switched off."""
        return step in self.without


def parsed(text: str) -> tuple[str, ...]:
    """'slice,coil,y,x' as names."""
    names = tuple(word.strip().lower() for word in text.replace(" ", ",").split(",") if word.strip())
    if not all(name.isidentifier() for name in names) or len(names) < 2:
        raise BadInput(f"--axes takes names as in slice,coil,y,x, got {text!r}")
    return names
