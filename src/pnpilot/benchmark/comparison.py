"""The table of a task: our method and everyone else's on the same data; what is known is not computed again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..io.images import image_paths
from ..physics import selected
from ..tasks import Setting, Task
from .cells import Cell, Cells, checksum
from .data import SIZE, dataset_folder, load_dataset
from .methods import Method
from .results import Results
from .scores import scored
from .tables import table_of

Tick = Callable[[str], Any]


class ImageSet(NamedTuple):
    """Images, and what tells them apart."""

    names: list[str]
    truth: Tensor
    identities: list[dict[str, int]]
    """Place and checksum: the noise depends on an image's place in the set."""

    @property
    def shown(self) -> int:
        """Which one is shown in pictures: the brightest, where there is most to see."""
        return int(self.truth.mean((1, 2, 3)).argmax())


class Condition(NamedTuple):
    """Simulated data of a whole test set in one setting, for one seed and draw."""

    images: ImageSet
    y: Tensor
    physics: Any


@dataclass
class Comparison:
    """What is measured."""

    task: Task
    data: Path
    datasets: Sequence[str]
    settings: Sequence[Setting]
    methods: Sequence[str]
    device: torch.device
    size: tuple[int, int] = SIZE
    images: int | None = None
    seed: int = 0
    seeds: int = 1
    draws: int | None = None
    """How often operators are drawn for each seed of noise; None: seeds draw both at once."""
    batch: int = 8
    channels: int = 1
    """Images are read as grey ones, or as colour with 3."""
    policy: Path | None = None
    """A folder with a policy to use instead of the one that ships."""

    def __len__(self) -> int:
        """How many reconstructions."""
        images = (len(image_paths(dataset_folder(self.data, dataset))[: self.images]) for dataset in self.datasets)
        return sum(images) * len(self.settings) * len(self.methods) * len(self.samples())

    def run(self, cells: Cells, results: Results, tick: Tick = lambda _: None) -> None:
        """Fill what is missing, and enter a row per dataset, setting and method; `tick` is called for each image."""
        methods, table = self.built(), table_of(self.task)
        # The paper's numbers are means over whole sets at its size.
        comparable = self.size == SIZE and self.images is None
        for dataset in self.datasets:
            images = self.test_set(dataset)
            for setting in self.settings:
                found: dict[str, list[dict[str, Any]]] = {name: [] for name in methods}
                for seed, draw in self.samples():
                    condition = self.simulated(images, setting, seed, draw)
                    for name, method in methods.items():
                        cell = Cell(dataset, setting.label, name, seed, self.size, draw)
                        for image, scores in self._fill(cells, cell, method, condition, tick).items():
                            found[name].append({"image": image, "seed": seed, "draw": draw, **scores})
                for name, own in found.items():
                    paper = table.paper(dataset, setting.label, name) if comparable else None
                    results.add(dataset, setting.label, name, own, paper)

    def samples(self) -> list[tuple[int, int | None]]:
        """Each seed with each draw."""
        draws = [None] if self.draws is None else range(self.draws)
        return [(seed, draw) for seed in range(self.seed, self.seed + self.seeds) for draw in draws]

    def built(self) -> dict[str, Method]:
        """The methods, ready to run."""
        return {name: Method(name, self.task, self.device, self.policy) for name in self.methods}

    def test_set(self, dataset: str) -> ImageSet:
        """The images of a test set."""
        names, truth = load_dataset(self.data, dataset, self.size, self.images, self.channels)
        identities = [{"place": place, "checksum": checksum(image)} for place, image in enumerate(truth)]
        return ImageSet(_told_apart(names), truth, identities)

    def simulated(self, images: ImageSet, setting: Setting, seed: int, draw: int | None) -> Condition:
        """Data of the whole set."""
        return Condition(images, *self.task.simulate(images.truth.to(self.device), setting, seed, draw))

    def reconstruct(
        self, cells: Cells, cell: Cell, method: Method, condition: Condition, index: list[int]
    ) -> tuple[Tensor, list[dict[str, Any]]]:
        """Images at these places of the set, with their scores; the one that is shown in pictures is kept."""
        images, there = condition.images, torch.tensor(index, device=self.device)
        y, physics = condition.y[there], selected(condition.physics, there, len(condition.y))
        start = time.perf_counter()
        answer = method(y, physics)
        found = answer.image.cpu()  # waits for the device
        seconds = (time.perf_counter() - start) / len(index)
        if images.shown in index and (cell.seed, cell.draw) == self.samples()[0]:
            identity = images.identities[images.shown]
            cells.keep_picture(cell, method.made_with, identity, found[index.index(images.shown)])
        return found, scored(found, images.truth[index], answer.iterations, seconds, self.device)

    def _fill(
        self, cells: Cells, cell: Cell, method: Method, condition: Condition, tick: Tick
    ) -> dict[str, dict[str, Any]]:
        """Scores by image: known ones are read, the others computed and kept batch by batch."""
        names, identities = condition.images.names, condition.images.identities
        known = cells.read(cell, method.made_with)
        missing = [i for i, name in enumerate(names) if not identities[i].items() <= known.get(name, {}).items()]
        words = f"{cell.dataset} {cell.setting} {cell.method}"
        for _ in range(len(names) - len(missing)):
            tick(words)
        for index in _parts(missing, 1 if method.one_by_one else self.batch):
            _, scores = self.reconstruct(cells, cell, method, condition, index)
            known |= {names[i]: {**own, **identities[i]} for i, own in zip(index, scores, strict=True)}
            cells.write(cell, method.made_with, known)
            for _ in index:
                tick(words)
        return {name: {key: known[name][key] for key in known[name] if key not in identities[0]} for name in names}


def _parts(places: Sequence[int], size: int) -> Iterator[list[int]]:
    return (list(places[start : start + size]) for start in range(0, len(places), size))


def _told_apart(names: Sequence[str]) -> list[str]:
    """Distinct names: images in different folders may share one."""
    seen: Counter[str] = Counter()
    told = []
    for name in names:
        seen[name] += 1
        told.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return told
