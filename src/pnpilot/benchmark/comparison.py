"""The paper's tables of one task: our method and everyone else's on the same data, each called as users call it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..baselines import BASELINES, Answer, build_baseline
from ..errors import BadInput, Incompatible, UnknownName
from ..io.images import image_paths
from ..metrics import psnr, ssim
from ..model import PnPilot
from ..policies.learned import Learned
from ..tasks import Setting, Task
from .cells import Cell, Cells, checksum, means
from .data import SIZE, dataset_folder, load_dataset
from .denoising import device_name
from .published import printed

OURS = "learned"
ORDER = {
    "csmri": ("zero-filled", "tv", "recpf", "fcsa", "admm-net", "ista-net+", "bm3d-mri", "dpir", "ircnn"),
    "phase": ("hio-free", "hio", "wf", "dolphin", "spar", "bm3d-prgamp", "prdeep"),
}
"""How the table of a task goes; other baselines for it come after these, and ours last."""


class Method:
    """A way to reconstruct, by name; ours with the policy that ships for a task, or with one in a folder."""

    def __init__(self, name: str, task: str, device: torch.device, policy: Path | None = None) -> None:
        self.name = name
        if name == OURS:
            learned = Learned.find(policy or task)
            if learned.task != task:
                raise Incompatible(f"the policy in {policy} was trained for task {learned.task!r}, not for {task!r}")
            self.model = PnPilot(learned.denoiser, policy=learned, peak=1.0, real=True, device=device)
            self.made_with: Any = [learned.sha256, self.model.denoiser.sha256]
            self.one_by_one = False
        else:
            self.baseline = build_baseline(name)
            self.made_with, self.one_by_one = self.baseline.made_with(), self.baseline.one_by_one

    def __call__(self, y: Tensor, physics: Any) -> Answer:
        """Reconstruct a batch: the real parts, where images have two."""
        if self.name == OURS:
            result = self.model.reconstruct(y, physics)
            return Answer(result.image[:, :1], torch.tensor([trace["iterations"] for trace in result.trace]))
        image, iterations = self.baseline.answer(y, physics)
        return Answer(image[:, :1], iterations)


def method_names(task: str) -> list[str]:
    """All there are, in the order of the table."""
    first = ORDER.get(task, ())
    others = sorted(name for name in BASELINES if task in BASELINES[name].serves and name not in first)
    return [*first, *others, OURS]


def choose_methods(task: str, wanted: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Those that were asked for, or all that can run here; and for the others of all, why not."""
    known = method_names(task)
    for name in wanted:
        if name not in known:
            raise UnknownName(f"unknown method {name!r}; known: {', '.join(known)}")
    obstacles = {name: why for name in known if name != OURS and (why := BASELINES[name].obstacle())}
    for name in wanted:
        if name in obstacles:
            raise BadInput(f"{name} {obstacles[name]}")
    return list(wanted) or [name for name in known if name not in obstacles], {} if wanted else obstacles


class Example(NamedTuple):
    """One image by several methods, to look at; all images (H, W)."""

    title: str
    truth: Tensor
    images: dict[str, Tensor]
    captions: dict[str, str]
    crop: tuple[slice, slice]


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
    policy: Path | None = None
    """A folder with another policy than the one that ships."""

    def __len__(self) -> int:
        """How many reconstructions."""
        images = (len(image_paths(dataset_folder(self.data, dataset))[: self.images]) for dataset in self.datasets)
        return sum(images) * len(self.settings) * len(self.methods) * len(self._samples())

    def run(self, cells: Cells, tick: Callable[[str], Any] = lambda _: None) -> list[dict[str, Any]]:
        """Fill what is missing, and return one row per dataset, setting and method; `tick` hears of each image."""
        methods = self._built()
        rows = []
        for dataset in self.datasets:
            names, truth = load_dataset(self.data, dataset, self.size, self.images)
            names = _told_apart(names)
            for setting in self.settings:
                found: dict[str, list[dict[str, Any]]] = {name: [] for name in methods}
                for seed, draw in self._samples():
                    y, physics = self.task.simulate(truth.to(self.device), setting, seed, draw)
                    for name, method in methods.items():
                        cell = Cell(dataset, setting.label, name, seed, self.size, draw)
                        for scores in self._fill(cells, cell, method, names, truth, y, physics):
                            found[name].append({**scores, "seed": seed, "draw": draw})
                            tick(f"{dataset} {setting.label} {name}")
                rows += [self._row(dataset, setting, name, own) for name, own in found.items()]
        return rows

    def _samples(self) -> list[tuple[int, int | None]]:
        """Each seed with each draw."""
        draws = [None] if self.draws is None else range(self.draws)
        return [(seed, draw) for seed in range(self.seed, self.seed + self.seeds) for draw in draws]

    def _built(self) -> dict[str, Method]:
        return {name: Method(name, self.task.name, self.device, self.policy) for name in self.methods}

    def _row(self, dataset: str, setting: Setting, method: str, images: Sequence[dict[str, Any]]) -> dict[str, Any]:
        labels = {"dataset": dataset, "setting": setting.label, "method": method}
        devices = sorted({image["device"] for image in images})
        # The paper's numbers are means over whole sets at its size.
        comparable = self.size == SIZE and self.images is None
        paper = printed(self.task.name, dataset, setting.label, method) if comparable else None
        spread = {"seeds": _spread(images, "seed"), "draws": _spread(images, "draw")}
        shown = {"count": len(images), "spread": spread, "device": " and ".join(devices), "paper": paper}
        return {**labels, **means(images), **shown}

    def _fill(
        self, cells: Cells, cell: Cell, method: Method, names: Sequence[str], truth: Tensor, y: Tensor, physics: Any
    ) -> Iterator[dict[str, Any]]:
        """Scores image by image, those that are known read, the others computed and kept batch by batch."""
        known = cells.read(cell, method.made_with)
        # The noise depends on an image's place in the set.
        identities = [{"place": place, "checksum": checksum(image)} for place, image in enumerate(truth)]
        missing = [i for i, name in enumerate(names) if not identities[i].items() <= known.get(name, {}).items()]
        yield from (known[name] for i, name in enumerate(names) if i not in missing)
        batch = 1 if method.one_by_one else self.batch
        for start in range(0, len(missing), batch):
            index = torch.tensor(missing[start : start + batch])
            for i, scores in zip(index.tolist(), self._measure(method, truth, y, physics, index), strict=True):
                known[names[i]] = {**scores, "device": device_name(self.device), **identities[i]}
            cells.write(cell, method.made_with, known)
            yield from (known[names[i]] for i in index.tolist())

    def _measure(
        self, method: Method, truth: Tensor, y: Tensor, physics: Any, index: Tensor
    ) -> Iterator[dict[str, float]]:
        there = index.to(self.device)
        data, own = y[there], self.task.select(physics, there)
        start = time.perf_counter()
        answer = method(data, own)
        image = answer.image.cpu()  # waits for the device
        seconds = (time.perf_counter() - start) / len(index)
        columns = (psnr(image, truth[index]), ssim(image, truth[index]), answer.iterations)
        for p, s, n in zip(*(column.tolist() for column in columns), strict=True):
            yield {"psnr": round(p, 4), "ssim": round(s, 4), "iterations": n, "seconds": round(seconds, 4)}

    def examples(self, tick: Callable[[str], Any] = lambda _: None) -> list[Example]:
        """The brightest image of each test set, which shows most, by every method.

        In the middle setting, and in the first and last as well if there is no other test set.
        """
        found, methods = [], self._built()
        for dataset in self.datasets:
            names, truth = load_dataset(self.data, dataset, self.size, self.images)
            index = int(truth.mean((1, 2, 3)).argmax())
            for setting in self._shown_settings():
                images = self._by_all(methods, truth, index, setting, lambda name: tick(f"picture by {name}"))
                captions = {name: f"{psnr(image, truth[[index]]).item():.2f} dB" for name, image in images.items()}
                shown = {name: image[0, 0] for name, image in images.items()}
                crop = (_middle(self.size[0]), _middle(self.size[1]))
                found.append(Example(f"{names[index]}\n{setting.label}", truth[index, 0], shown, captions, crop))
        return found

    @property
    def pictures(self) -> int:
        """How many reconstructions the examples take."""
        return len(self.datasets) * len(self._shown_settings()) * len(self.methods)

    def _shown_settings(self) -> list[Setting]:
        middle = self.settings[len(self.settings) // 2]
        ends = () if len(self.datasets) > 1 else (self.settings[0], self.settings[-1])
        return [setting for setting in self.settings if setting in (middle, *ends)]

    def _by_all(
        self, methods: Mapping[str, Method], truth: Tensor, index: int, setting: Setting, tick: Callable[[str], Any]
    ) -> dict[str, Tensor]:
        y, physics = self.task.simulate(truth.to(self.device), setting, *self._samples()[0])
        there = torch.tensor([index], device=self.device)
        own, images = self.task.select(physics, there), {}
        for name, method in methods.items():
            images[name] = method(y[there], own).image.cpu()
            tick(name)
        return images


def _spread(images: Sequence[Mapping[str, Any]], key: str) -> float | None:
    """How far apart the mean PSNRs of different seeds or draws are; None if there is one alone."""
    found: dict[Any, list[float]] = {}
    for image in images:
        found.setdefault(image[key], []).append(image["psnr"])
    averages = [sum(values) / len(values) for values in found.values()]
    return round(max(averages) - min(averages), 4) if len(averages) > 1 else None


def _told_apart(names: Sequence[str]) -> list[str]:
    """Names for the record: images in different folders may share theirs."""
    seen: Counter[str] = Counter()
    told = []
    for name in names:
        seen[name] += 1
        told.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return told


def _middle(length: int) -> slice:
    return slice(length // 4, length // 4 + length // 2)
