"""What tables are measured on: settings, and test sets in a folder the user names (none ship with the package)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from ..errors import BadInput
from ..io.images import image_paths, read_image
from ..tasks import Setting, Task
from .tables import table_of

SIZE = (128, 128)
"""Size of the test images for MRI and phase retrieval, as in the paper."""


def dataset_folder(data: Path, name: str) -> Path:
    """The folder of a test set: DATA/NAME or DATA/test/NAME."""
    for folder in (data / name, data / "test" / name):
        if folder.is_dir():
            return folder
    raise BadInput(f"no test set {name!r} in {data}: looked for {data / name} and {data / 'test' / name}")


def check_datasets(data: Path, names: Sequence[str], images: int | None = None) -> None:
    """Refuse missing or empty test sets and unreadable images before any work is done."""
    for name in names:
        for path in image_paths(dataset_folder(data, name))[:images]:
            read_image(path)


def choose_datasets(task: Task, data: Path, names: Sequence[str], images: int | None = None) -> list[str]:
    """These test sets, or those of the task's table; refused if they cannot be read."""
    chosen = list(names or table_of(task).datasets)
    check_datasets(data, chosen, images)
    return chosen


def load_dataset(
    data: Path, name: str, size: tuple[int, int], images: int | None = None, channels: int = 1
) -> tuple[list[str], Tensor]:
    """Names and images (N, channels, height, width) of a test set."""
    paths = image_paths(dataset_folder(data, name))[:images]
    return [path.stem for path in paths], torch.stack([read_image(path, size, channels) for path in paths])


def choose_settings(task: Task, labels: Sequence[str]) -> list[Setting]:
    """The settings with these labels, once each, or all of the task's if there are none."""
    settings = {setting.label: setting for setting in map(task.named, labels)}
    for setting in settings.values():  # refuse a bad one before the first is measured
        task.physics(setting, (task.channels[0], *SIZE), torch.Generator())
    return list(settings.values()) or list(task.settings)
