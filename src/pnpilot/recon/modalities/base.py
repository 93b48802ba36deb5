"""What a modality is: measurements of one kind, and how those of a file become data and physics, image by image."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ...errors import BadInput
from ...io.raw import Raw, Scratch
from ...registry import Registry
from ..options import GIVEN, Options
from ..prepared import Prepared


class Modality(ABC):
    """The images of a file, prepared one after the other. The first line of the docstring says what is measured."""

    name: str
    steps: ClassVar[Mapping[str, str]] = {}
    """What is done on the way, where it applies, and can be left out: its name, and what it is."""
    uses: ClassVar[frozenset[str]] = frozenset()
    """Which options it understands, of those that bring what files lack."""
    notes: list[str]
    """What a user should know before the work begins."""
    lengths: Mapping[str, int]
    """How long each axis is, in the order of the file."""
    counting: tuple[str, ...] = ()
    """The axes that count images, the last the fastest."""
    shape: tuple[int, ...] = ()
    """How many images along each of those."""
    plane: tuple[str, str] = ("y", "x")
    """Rows and columns of an image."""
    sizes: tuple[int, int]
    """How many rows and columns the final images have."""
    channels: int = 1
    """Three for colour."""
    pixels: np.dtype | None = None
    """Of images that are real numbers: the type of those, which pictures keep."""

    @classmethod
    def takes(cls, raw: Raw, options: Options) -> bool:  # noqa: ARG003
        """Whether it is for this file: by default, if its reader says so."""
        return raw.kind == cls.name

    @abstractmethod
    def __init__(self, raw: Raw, options: Options, scratch: Scratch) -> None:
        """Understand what the file holds; refuses, with a reason, what cannot be right."""

    @abstractmethod
    def __getitem__(self, number: int) -> Prepared:
        """One image, ready for the model."""

    @abstractmethod
    def cost(self) -> int:
        """Bytes that one image in work takes, beyond what the denoiser does."""

    def __len__(self) -> int:
        return math.prod(self.shape)

    def place(self, number: int) -> dict[str, int]:
        """Where an image is along the axes that count images."""
        where = map(int, np.unravel_index(number, self.shape)) if self.shape else ()
        return dict(zip(self.counting, where, strict=True))

    def truth(self, number: int) -> np.ndarray | None:  # noqa: ARG002
        """The image behind a measurement that was simulated; None where it is not known."""
        return None


MODALITIES: Registry[Modality] = Registry("modality", __package__)


def understood(raw: Raw, options: Options, scratch: Scratch) -> Modality:
    """The images of a file, by the modality that takes it; refuses options that say nothing about it."""
    # Of several the last is taken: a user's own comes after ours.
    kind = next((kind for kind in reversed(MODALITIES.entries()) if kind.takes(raw, options)), None)
    if kind is None and raw.pictures:
        raise BadInput(
            "it holds finished images, not a measurement: --simulate 'radial x4' measures them anew, as a trial; --psf "
            "FILE takes them for pictures that were blurred by what is in FILE, --angles FILE for projections"
        )
    if kind is None:
        raise BadInput(f"nothing knows measurements of the kind {raw.kind!r}; known: {', '.join(MODALITIES)}")
    for option in sorted(GIVEN):
        if getattr(options, option) is not None and option not in kind.uses:
            raise BadInput(f"--{option} says nothing about what it holds: {MODALITIES.summary(kind.name).rstrip('.')}")
    for step in sorted((options.without | options.always) - kind.steps.keys()):
        held, known = MODALITIES.summary(kind.name).rstrip("."), ", ".join(kind.steps) or "none"
        raise BadInput(f"{step} is no step for what it holds: {held}; there are {known}")
    return kind(raw, options, scratch)
