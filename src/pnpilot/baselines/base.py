"""What a baseline is: a function from data and physics to an image, in deepinv's layout."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

import torch
from deepinv.physics import Physics
from torch import Tensor

from ..errors import BadInput
from ..registry import Registry


class Answer(NamedTuple):
    """A method's result for a batch."""

    image: Tensor
    """(B, C, H, W), in the layout of the physics."""
    iterations: Tensor
    """How many each image took (B,)."""


class Baseline(ABC):
    """Base of all baselines."""

    name: str
    reference: str
    """Who published it, where and in which year; or "nobody"."""
    serves: frozenset[str] = frozenset()
    """The tasks whose benchmark has a row for it."""
    bounded: bool = False
    """Whether its images are real and within [0, 1]."""
    modules: tuple[str, ...] = ()
    """Modules it needs that only an extra installs."""
    extra: str = "baselines"
    """The extra that installs them."""
    programs: tuple[str, ...] = ()
    """Programs it calls, each by the name of its Debian package."""
    one_by_one: bool = False
    """Whether it solves a batch image by image, so that larger batches are no faster."""
    iterations: int = 0
    """How many iterations it takes, or the most it takes if it stops by itself."""

    @abstractmethod
    def __call__(self, y: Tensor, physics: Physics) -> Tensor:
        """Reconstruct. A physics that it is not made for is refused by an `Incompatible` that says what it needs."""

    def answer(self, y: Tensor, physics: Physics) -> Answer:
        """Reconstruct, and say how many iterations that took."""
        return Answer(self(y, physics), torch.full((len(y),), self.iterations))

    def made_with(self) -> Any:
        """What its results depend on besides data and code, such as the sha256 of its weights: a JSON value."""
        return None

    @classmethod
    def obstacle(cls) -> str | None:
        """Why it cannot run here, and what to do about it; None if it can."""
        return cls.uninstalled()

    @classmethod
    def home(cls) -> Path:
        """The folder of the file that defines it, which may be a user's."""
        file = getattr(sys.modules[cls.__module__], "__file__", None)
        return Path(file).resolve().parent if file else Path.cwd()

    @classmethod
    def uninstalled(cls) -> str | None:
        """Which of its modules or programs are missing, and how to get them."""
        if missing := [module for module in cls.modules if find_spec(module) is None]:
            return f"needs {' and '.join(missing)}: pip install 'pnpilot[{cls.extra}]'"
        if absent := [program for program in cls.programs if which(program) is None]:
            return f"needs the program {' and '.join(absent)}: apt-get install {' '.join(absent)}"
        return None


BASELINES: Registry[Baseline] = Registry("baseline", __package__)


def build_baseline(name: str) -> Baseline:
    """The baseline of that name."""
    kind = BASELINES[name]
    if obstacle := kind.obstacle():
        raise BadInput(f"{name} {obstacle}")
    return kind()
