"""Tables of methods on the same data: datasets × settings × seeds × methods; what is known is not computed again."""

from __future__ import annotations

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
from .cells import Cell, Cells, checksum, fingerprint
from .data import SIZE, dataset_folder, load_dataset
from .methods import Method
from .results import Results
from .scores import rounded, scored
from .tables import table_of
from .timing import timed

Tick = Callable[[str], Any]


class ImageSet(NamedTuple):
    """Images, and what tells them apart."""

    names: list[str]
    truth: Tensor
    identities: list[dict[str, Any]]
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

    def identity(self, place: int) -> dict[str, Any]:
        """What tells an image and its data from others: an operator may have changed under the same name."""
        return {**self.images.identities[place], "data": fingerprint(self.y[place])}

    def at(self, places: Sequence[int]) -> tuple[Tensor, Any]:
        """Data and physics of these images; of all of them the same objects every time, so that methods know them."""
        if len(places) == len(self.y):
            return self.y, self.physics
        index = torch.tensor(places, device=self.y.device)
        return self.y[index], selected(self.physics, index, len(self.y))


class Measured(NamedTuple):
    """What a method reached on a test set in a setting."""

    dataset: str
    setting: str
    method: str
    images: list[dict[str, Any]]
    """Scores of each image, for each seed and draw."""


@dataclass
class Comparison:
    """What is measured."""

    task: Task
    data: Path
    datasets: Sequence[str]
    settings: Sequence[Setting]
    methods: Sequence[Method]
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

    def __len__(self) -> int:
        """How many reconstructions."""
        images = (len(image_paths(dataset_folder(self.data, dataset))[: self.images]) for dataset in self.datasets)
        return sum(images) * len(self.settings) * len(self.methods) * len(self.samples())

    def run(self, results: Results, cells: Cells | None = None, tick: Tick = lambda _: None) -> None:
        """Enter a row per dataset, setting and method, beside the paper's number, as soon as it is known."""
        table = table_of(self.task)
        # The paper's numbers are means over whole sets at its size.
        comparable = self.size == SIZE and self.images is None
        for row in self.measured(cells, tick):
            paper = table.paper(row.dataset, row.setting, row.method) if comparable else None
            results.add(*row, paper)

    def measured(self, cells: Cells | None = None, tick: Tick = lambda _: None) -> Iterator[Measured]:
        """Every row; what cells hold is not computed again, and without cells nothing is kept.

        `tick` is called for each image.
        """
        for dataset in self.datasets:
            images = self.test_set(dataset)
            for setting in self.settings:
                rows = [Measured(dataset, setting.label, method.name, []) for method in self.methods]
                for seed, draw in self.samples():
                    condition = self.simulated(images, setting, seed, draw)
                    drawn = {"seed": seed} if draw is None else {"seed": seed, "draw": draw}
                    for method, row in zip(self.methods, rows, strict=True):
                        cell = self.cell(dataset, setting, method, seed, draw)
                        for image, scores in self.filled(cells, cell, method, condition, tick).items():
                            row.images.append({"image": image, **drawn, **scores})
                        if (seed, draw) == self.samples()[-1]:
                            yield row

    def samples(self) -> list[tuple[int, int | None]]:
        """Each seed with each draw."""
        draws = [None] if self.draws is None else range(self.draws)
        return [(seed, draw) for seed in range(self.seed, self.seed + self.seeds) for draw in draws]

    def cell(self, dataset: str, setting: Setting, method: Method, seed: int, draw: int | None) -> Cell:
        """Where results of one condition and method are kept."""
        return Cell(dataset, setting.label, method.name, seed, self.size, draw, self.channels)

    def test_set(self, dataset: str) -> ImageSet:
        """The images of a test set."""
        return image_set(*load_dataset(self.data, dataset, self.size, self.images, self.channels))

    def simulated(self, images: ImageSet, setting: Setting, seed: int, draw: int | None) -> Condition:
        """Data of the whole set."""
        return Condition(images, *self.task.simulate(images.truth.to(self.device), setting, seed, draw))

    def batches(self, method: Method, places: Sequence[int], images: ImageSet) -> Iterator[list[int]]:
        """These places as the method takes them: some at a time, one by one, or together with all others of the set."""
        size = 1 if method.one_by_one else self.batch
        if method.whole_set and places:
            places = range(len(images.names))
            size = len(places)
        yield from (list(places[start : start + size]) for start in range(0, len(places), size))

    def reconstruct(
        self, cells: Cells | None, cell: Cell, method: Method, condition: Condition, places: list[int]
    ) -> tuple[Tensor, list[dict[str, Any]]]:
        """Images at these places of the set, with their scores; the one that is shown in pictures is kept."""
        images = condition.images
        truth = images.truth[places]
        y, physics = condition.at(places)
        seen = truth.to(self.device) if method.needs_truth else None
        outcome, seconds = timed(lambda: method(y, physics, seen), self.device)
        seconds = seconds / len(places) if outcome.seconds is None else outcome.seconds
        found = outcome.image.cpu()
        if cells is not None and images.shown in places and (cell.seed, cell.draw) == self.samples()[0]:
            identity = condition.identity(images.shown)
            cells.keep_picture(cell, depends_on(method, images), identity, found[places.index(images.shown)])
        scores = scored(found, truth, outcome.iterations, seconds, self.device)
        constants = {name: values.tolist() for name, values in outcome.found.items()}
        for place, own in enumerate(scores):
            own |= rounded({name: values[place] for name, values in constants.items()})
        return found, scores

    def filled(
        self, cells: Cells | None, cell: Cell, method: Method, condition: Condition, tick: Tick
    ) -> dict[str, dict[str, Any]]:
        """Scores by image: known ones are read, the others computed and kept batch by batch."""
        names = condition.images.names
        identities = [condition.identity(place) for place in range(len(names))]
        made_with = depends_on(method, condition.images)
        known = {} if cells is None else cells.read(cell, made_with)
        missing = [i for i, name in enumerate(names) if not identities[i].items() <= known.get(name, {}).items()]
        words = f"{cell.dataset} {cell.setting} {cell.method}"
        for _ in range(len(names) - len(missing)):
            tick(words)
        for places in self.batches(method, missing, condition.images):
            _, scores = self.reconstruct(cells, cell, method, condition, places)
            known |= {names[i]: {**own, **identities[i]} for i, own in zip(places, scores, strict=True)}
            if cells is not None:
                cells.write(cell, made_with, known)
            for _ in places:
                tick(words)
        return {name: {key: known[name][key] for key in known[name] if key not in identities[0]} for name in names}


def image_set(names: Sequence[str], truth: Tensor) -> ImageSet:
    """These images (B, C, H, W), with names that tell them apart."""
    identities = [{"place": place, "checksum": checksum(image)} for place, image in enumerate(truth)]
    return ImageSet(_told_apart(names), truth, identities)


def depends_on(method: Method, images: ImageSet) -> Any:
    """What its results depend on besides the image, the setting and the code."""
    return [method.made_with, images.identities] if method.whole_set else method.made_with


def _told_apart(names: Sequence[str]) -> list[str]:
    """Distinct names: images in different folders may share one."""
    seen: Counter[str] = Counter()
    told = []
    for name in names:
        seen[name] += 1
        told.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return told
