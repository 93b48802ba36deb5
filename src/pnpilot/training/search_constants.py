"""Search the constants of a method, setting by setting, on photographs that are in no test set."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..baselines import BASELINES
from ..baselines._searched import Searched, parameters_file
from ..errors import BadInput, require
from ..io.files import writable_folder, write_json
from ..metrics import psnr
from ..physics import selected
from ..tasks import Setting
from .arguments import SearchArgs
from .augment import augmented
from .failures import mendable
from .options import command_of
from .patches import corners, read_split
from .progress import ProgressLine

Map = Callable[..., Iterable[Any]]


def search_constants(args: SearchArgs, out: Path, *, device: torch.device, workers: int = 1) -> dict[str, Any]:
    """Find the constants with the highest mean PSNR in each setting, write them to `out`, and return what was written.

    On a CPU, `workers` processes share the work. What was searched before a stop is not searched again.
    """
    kind = BASELINES[args.name]
    assert issubclass(kind, Searched)
    if missing := kind.uninstalled():
        raise BadInput(f"{args.name} {missing}")
    path = writable_folder(out) / f"{args.name}.json"
    grid = {name: list(values) for name, values in kind.grid.items()}
    identity = {**asdict(args), "data": Path(args.data).name, "grid": grid}
    table = _earlier(path, identity) or {
        "name": args.name,
        "command": command_of("pnpilot train baseline", args, ("data", "images", "seed")),
        "arguments": identity,
        "settings": {},
    }
    truth = _images(args)
    task = kind.task()
    settings = [setting for setting in task.settings if setting.label not in table["settings"]]
    with mendable(out), ProgressLine(f"search {args.name}") as line, _told(line), _crew(workers, device) as crew:
        done = len(task.settings) - len(settings)
        for index, setting in enumerate(settings, done):
            tell = _Teller(line, setting.label, index / (done + len(settings)))
            search = _Search(kind, truth, setting, device, crew, tell)
            constants, score = search.best(args.refinements)
            table["settings"][setting.label] = {
                **{name: value for name, value in setting.values.items() if isinstance(value, int | float)},
                "constants": {name: float(f"{value:.4g}") for name, value in constants.items()},
                "psnr": round(score, 3),
            }
            write_json(path, table)
            line.say(f"{setting.label}: {constants} give {score:.2f} dB, {len(search.known)} tried")
        line.say(f"constants in {path}; those in use are in {parameters_file(args.name)}")
    return table


class _Job(NamedTuple):
    """Some of the images with one choice of constants: what a worker is given."""

    name: str
    constants: Mapping[str, float]
    truth: Tensor
    setting: Setting
    first: int
    last: int
    device: torch.device

    def run(self) -> list[float]:
        """PSNR by image."""
        kind = BASELINES[self.name]
        assert issubclass(kind, Searched)
        index = torch.arange(self.first, self.last, device=self.device)
        truth = self.truth.to(self.device)
        task = kind.task()
        y, physics = task.simulate(truth, self.setting, seed=1)
        image = kind(self.constants)(y[index], selected(physics, index, len(y)))
        return psnr(task.extract(image), truth[index]).tolist()


class _Teller:
    """Reports how far a search is, at most once per interval."""

    def __init__(self, line: ProgressLine, label: str, share: float) -> None:
        self.line, self.label, self.share = line, label, share
        self.told = time.monotonic()

    def __call__(self, finished: int, jobs: int) -> None:
        if time.monotonic() - self.told > self.line.interval:
            self.line.update(self.share, f"{self.label}: {finished} of {jobs}")
            self.told = time.monotonic()


class _Search:
    """The best point of a grid, then of finer ones around it; no point is tried twice."""

    def __init__(
        self,
        kind: type[Searched],
        truth: Tensor,
        setting: Setting,
        device: torch.device,
        crew: Map | None,
        tell: Callable[[int, int], None],
    ) -> None:
        self.kind, self.truth, self.setting, self.device, self.tell = kind, truth, setting, device, tell
        # Processes take single images; a GPU takes all at once.
        self.map: Map = crew or map
        self.count = 1 if crew else len(truth)
        self.known: dict[tuple[float, ...], float] = {}

    def best(self, refinements: int) -> tuple[dict[str, float], float]:
        """The constants found, and the mean PSNR that they give."""
        axes = [list(values) for values in self.kind.grid.values()]
        self._try(product(*axes))
        for _ in range(refinements):
            axes = [_denser(axis, value) for axis, value in zip(axes, self._top(), strict=True)]
            self._try(product(*(_around(axis, value) for axis, value in zip(axes, self._top(), strict=True))))
        return dict(zip(self.kind.grid, self._top(), strict=True)), self.known[self._top()]

    def _top(self) -> tuple[float, ...]:
        return max(self.known, key=self.known.__getitem__)

    def _try(self, points: Iterable[tuple[float, ...]]) -> None:
        jobs = {
            (point, first): _Job(
                self.kind.name,
                dict(zip(self.kind.grid, point, strict=True)),
                self.truth,
                self.setting,
                first,
                min(first + self.count, len(self.truth)),
                self.device,
            )
            for point in points
            if point not in self.known
            for first in range(0, len(self.truth), self.count)
        }
        found: dict[tuple[float, ...], list[float]] = {}
        for finished, ((point, _), scores) in enumerate(zip(jobs, self.map(_Job.run, jobs.values()), strict=True)):
            found.setdefault(point, []).extend(scores)
            self.tell(finished + 1, len(jobs))
        self.known |= {point: sum(scores) / len(scores) for point, scores in found.items()}


def _denser(axis: Sequence[float], value: float) -> list[float]:
    """The axis with one more value on each side of `value`: beyond the axis, if that is at an end."""
    place = axis.index(value)
    lower = axis[place - 1] if place else value * value / axis[1]
    upper = axis[place + 1] if place + 1 < len(axis) else value * value / axis[-2] if axis[-2] else 2 * value
    return sorted({*axis, _middle(lower, value), _middle(value, upper)})


def _middle(low: float, high: float) -> float:
    return math.sqrt(low * high) if low > 0 else high / 2


def _around(axis: Sequence[float], value: float) -> Sequence[float]:
    place = axis.index(value)
    return axis[max(0, place - 1) : place + 2]


def _images(args: SearchArgs) -> Tensor:
    """Photographs, every other one altered as in the training of policies."""
    training, _ = read_split(Path(args.data), 0, args.seed)
    images = corners(training, args.size)[: args.images]
    require(len(images) > 0, f"no image in {args.data} is at least {args.size}×{args.size}")
    images[1::2] = augmented(images, torch.Generator().manual_seed(args.seed))[1::2]
    return images


def _earlier(path: Path, identity: dict[str, Any]) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        table = json.loads(path.read_text())
        same = table["arguments"] == identity
    except (OSError, ValueError, KeyError, TypeError):
        same = False
    require(same, f"{path} belongs to a search with other settings; choose another folder or delete it")
    return table


@contextmanager
def _told(line: ProgressLine) -> Iterator[None]:
    """Tell the user that a stopped search has lost nothing."""
    try:
        yield
    except KeyboardInterrupt:
        line.say("stopped; the same command goes on from what is finished")
        raise


@contextmanager
def _crew(workers: int, device: torch.device) -> Iterator[Map | None]:
    """A map over jobs in several processes, or None where one process does all."""
    if device.type == "cuda" or workers < 2:
        yield None
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), torch.set_num_threads, (1,)) as crew:
        try:
            yield crew.map
        except BaseException:
            crew.shutdown(cancel_futures=True)
            raise
