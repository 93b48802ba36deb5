"""What an operator of the benchmark is: a task, one setting of it, and the images and seed that it is measured with."""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from deepinv.physics import Physics
from torch import Tensor

from ...errors import BadInput, require
from ...io.images import image_paths, read_image
from ...registry import Registry
from ...tasks import TASKS, Setting, Task, build_task
from ..data import dataset_folder

GROUPS = ("MRI", "phase retrieval", "deblurring", "inpainting", "super-resolution", "tomography", "photons", "others")
"""In the order of the table."""


class Operator(ABC):
    """Base of all operators. Its docstring says what a stranger needs to repeat it: kernels, masks, noise, images."""

    name: str
    group: ClassVar[str]
    """One of `GROUPS`."""
    task: ClassVar[str]
    """The task that simulates it."""
    values: ClassVar[Mapping[str, Any]] = {}
    """What the setting of that task is made of."""
    dataset: ClassVar[str] = "set12"
    only: ClassVar[Sequence[str]] = ()
    """The images of the set by their names; default all."""
    every: ClassVar[int] = 1
    """Of those, the first and every so-manieth after it."""
    size: ClassVar[tuple[int, int]] = (128, 128)
    cut: ClassVar[bool] = False
    """Whether images are cut to the size, around their middle; default they are resized, by bicubic interpolation."""
    channels: ClassVar[int] = 1
    seed: ClassVar[int] = 0
    """Of all that is drawn: image number i of the set uses a generator of PyTorch with the seed 100003·seed + i."""
    published: ClassVar[Mapping[str, Mapping[str, float]]] = {}
    """PSNR in dB by method and image, where others printed numbers for the same protocol."""

    def setting(self, data: Path) -> Setting:  # noqa: ARG002
        """The setting; `data` is the folder that holds test sets and kernels."""
        return TASKS[self.task].setting(**self.values)  # type: ignore[attr-defined]

    def described(self) -> str:
        """All that its docstring says, as one line."""
        return " ".join((inspect.getdoc(type(self)) or "").split())

    @property
    def pixels(self) -> int:
        """Numbers in an image."""
        return self.channels * self.size[0] * self.size[1]

    def built(self) -> Task:
        """The task."""
        return build_task(self.task)

    def count(self, data: Path, count: int | None = None) -> int:
        """How many images, no more than `count`."""
        return len(self._paths(data)[:count])

    def images(self, data: Path, count: int | None = None) -> tuple[list[str], Tensor]:
        """Names and images (N, C, H, W) in [0, 1], the first `count` of them."""
        paths = self._paths(data)[:count]
        return [path.stem for path in paths], torch.stack([self._image(path) for path in paths])

    def simulate(self, truth: Tensor, data: Path) -> tuple[Tensor, Physics, Task]:
        """Data of these images, one physics for all of them, and the task, which knows their layout."""
        task = self.built()
        return *task.simulate(truth, self.setting(data), self.seed), task

    def paper(self, method: str, names: Sequence[str]) -> float | None:
        """The mean of what others printed for these images."""
        printed = self.published.get(method, {})
        return sum(printed[name] for name in names) / len(names) if printed.keys() >= set(names) else None

    def told(self, data: Path, names: Sequence[str]) -> dict[str, Any]:
        """What it is, as JSON."""
        kind, setting = type(self), self.setting(data)
        own = {"group": kind.group, "task": kind.task, "setting": setting.label, "dataset": kind.dataset}
        images = {"images": list(names), "size": list(kind.size), "cut": kind.cut, "channels": kind.channels}
        return {"is": self.described(), **own, **images, "seed": kind.seed, "published": dict(kind.published)}

    def _paths(self, data: Path) -> list[Path]:
        found = [
            path for path in image_paths(dataset_folder(data, self.dataset)) if path.stem in self.only or not self.only
        ]
        missing = set(self.only) - {path.stem for path in found}
        require(not missing, f"{self.name} needs {', '.join(sorted(missing))} of the test set {self.dataset!r}")
        return found[:: self.every]

    def _image(self, path: Path) -> Tensor:
        if not self.cut:
            return read_image(path, self.size, self.channels)
        image = read_image(path, None, self.channels)
        top, left = ((length - own) // 2 for length, own in zip(image.shape[1:], self.size, strict=True))
        if min(top, left) < 0:
            raise BadInput(
                f"{path} is {image.shape[1]}×{image.shape[2]}, {self.name} needs {self.size[0]}×{self.size[1]}"
            )
        return image[:, top : top + self.size[0], left : left + self.size[1]].contiguous()


OPERATORS: Registry[Operator] = Registry("operator", __package__)


def build_operator(name: str) -> Operator:
    """The operator of that name."""
    return OPERATORS[name]()


def in_order() -> list[str]:
    """All names, group by group."""
    return sorted(OPERATORS, key=lambda name: (GROUPS.index(OPERATORS[name].group), name))


class Drawn(NamedTuple):
    """An operator with its images and their data."""

    operator: Operator
    names: list[str]
    truth: Tensor
    """(B, C, H, W) in [0, 1]."""
    y: Tensor
    physics: Physics
    task: Task
    """Which brings plain images to the layout of the physics and back."""


def conditions(
    data: Path, names: Iterable[str] = (), images: int | None = None, device: torch.device | str = "cpu"
) -> Iterator[Drawn]:
    """Each of these operators, or of all, with its data: what scripts that look for better constants go through."""
    for name in list(names) or in_order():
        operator = build_operator(name)
        labels, truth = operator.images(data, images)
        yield Drawn(operator, labels, truth.to(device), *operator.simulate(truth.to(device), data))
