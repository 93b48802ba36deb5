"""Examples of a comparison to look at: one image of each test set, reconstructed by every method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor

from ..metrics import psnr
from ..tasks import Setting
from .cells import Cells
from .comparison import Comparison, depends_on


class Example(NamedTuple):
    """One image by several methods; all images (C, H, W)."""

    title: str
    truth: Tensor
    images: dict[str, Tensor]
    captions: dict[str, str]
    crop: tuple[slice, slice]


def shown_settings(plan: Comparison) -> list[Setting]:
    """The middle setting, and the first and last as well if there is no other test set."""
    middle = plan.settings[len(plan.settings) // 2]
    ends = () if len(plan.datasets) > 1 else (plan.settings[0], plan.settings[-1])
    return [setting for setting in plan.settings if setting in (middle, *ends)]


def examples(plan: Comparison, cells: Cells, tick: Callable[[str], Any] = lambda _: None) -> list[Example]:
    """The examples; kept reconstructions are read, and only missing ones computed."""
    found = []
    seed, draw = plan.samples()[0]
    for dataset in plan.datasets:
        images = plan.test_set(dataset)
        name, truth = images.names[images.shown], images.truth[images.shown]
        for setting in shown_settings(plan):
            shown: dict[str, Tensor] = {}
            condition = plan.simulated(images, setting, seed, draw)
            for method in plan.methods:
                cell = plan.cell(dataset, setting, method, seed, draw)
                picture = cells.picture(cell, depends_on(method, images), condition.identity(images.shown))
                if picture is None or picture.shape != truth.shape:
                    (places,) = plan.batches(method, [images.shown], images)
                    picture = plan.reconstruct(cells, cell, method, condition, places)[0][places.index(images.shown)]
                shown[method.name] = picture
                tick(f"picture by {method.name}")
            captions = {own: f"{psnr(image[None], truth[None]).item():.2f} dB" for own, image in shown.items()}
            crop = (_middle(plan.size[0]), _middle(plan.size[1]))
            found.append(Example(f"{name}\n{setting.label}", truth, shown, captions, crop))
    return found


def _middle(length: int) -> slice:
    return slice(length // 4, length // 4 + length // 2)
