"""The scan that comes with the package."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from .images import read_image


def example_brain() -> Tensor:
    """A coronal slice of a real brain scan, (1, 1, 160, 160) in [0, 1]; `data/brain.txt` says where it is from."""
    return read_image(Path(__file__).parent.parent / "data" / "brain.png")[None]
