"""Methods on one scan: ours, told only maps and mask, against other programs at their best, with the same maps.

Maps are those of the whole scan, or, as for a scan that was never sampled whole, those that each mask's samples show.
Then ours is handed a file and told nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from deepinv.physics import MRI, MultiCoilMRI, Physics
from torch import Tensor

from ..baselines import BASELINES, Baseline, build_baseline
from ..baselines._sense import Sense
from ..devices import device_name
from ..errors import UnknownName, require
from ..io.cfl import read_cfl, write_cfl
from ..metrics import psnr
from ..model import PnPilot
from ..problems import open_problem
from ..recon import reconstruct_file
from ..safety import SAFE
from ..types import to_two_channels
from .examples import Example
from .results import Results
from .scan import Scan, maps_from_samples
from .timing import timed

START = "start"
OURS, BY_FILE = SAFE, "reconstruct"
COARSE, FINE = 5, 2
"""Weights on the first, logarithmic grid; how often it is refined around the best."""
SHOWN = " x4"
"""Settings that are drawn, if they were measured."""

Tick = Callable[[str], Any]


@dataclass
class ScanComparison:
    """Settings × methods on one scan."""

    scan: Scan
    name: str
    settings: Sequence[str]
    methods: Sequence[str]
    device: torch.device
    seed: int = 0
    seeds: int = 1
    """How many masks of each setting are drawn, from this seed on."""
    from_samples: bool = False
    """Whether maps are those that each mask's samples show, and ours is handed a file."""
    images: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    """What was reconstructed from the first mask (1, 1, H, W), by setting and method."""

    def __len__(self) -> int:
        """How many reconstructions."""
        searched = [name for name in self.methods if _is_searched(name)]
        return self.seeds * len(self.settings) * (len(self.methods) + len(searched) * (COARSE + 2 * FINE - 1))

    def check(self) -> None:
        """Refuse what cannot run before the first measurement."""
        known = known_methods(self.from_samples)
        for name in self.methods:
            if name not in known:
                raise UnknownName(f"unknown method {name!r}; known: {', '.join(known)}")
            if name in BASELINES:
                build_baseline(name)
        for label in self.settings:
            self.scan.measure(label, self.seed)

    def run(self, results: Results, tick: Tick = lambda _: None) -> None:
        """Enter a row per setting and method as soon as it is known."""
        for label in self.settings:
            for method in self.methods:
                found = []
                for seed in range(self.seed, self.seed + self.seeds):
                    y, physics, kept = self._measured(label, seed)
                    image, scores = self._reconstruct(method, y, physics, partial(tick, f"{label} {method}"))
                    self.images.setdefault(label, {}).setdefault(method, self.scan.shown(image))
                    found.append({"image": self.name, "seed": seed, "kept": kept, **scores})
                kept = sum(own["kept"] for own in found) / len(found)
                results.add(self.name, label, method, found, kept=round(kept, 4))

    def examples(self) -> list[Example]:
        """What was reconstructed, to look at, with errors: some settings, cut to the head."""
        rows, columns = (self.scan.head.any(axis).nonzero().flatten().tolist() for axis in (1, 0))
        crop = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
        found = []
        for label in [label for label in self.images if label.endswith(SHOWN)] or list(self.images)[:3]:
            images = {name: image[0] for name, image in self.images[label].items()}
            scores = {name: psnr(image[None], self.scan.truth, self.scan.head) for name, image in images.items()}
            captions = {name: f"{score.item():.2f} dB" for name, score in scores.items()}
            found.append(Example(f"{self.name}\n{label}", self.scan.truth[0], images, captions, crop))
        return found

    def _measured(self, label: str, seed: int) -> tuple[Tensor, Physics, float]:
        y, physics, kept = self.scan.measure(label, seed)
        if not self.from_samples:
            return y, physics, kept
        require(not isinstance(physics, MRI), "a single coil has no maps to find in its samples")
        mask = physics.mask[0, 0]
        maps = maps_from_samples(torch.complex(y[0, 0], y[0, 1]), mask)
        return y, MultiCoilMRI(mask=mask, coil_maps=maps[None], img_size=(2, *mask.shape)), kept

    def _reconstruct(
        self, method: str, y: Tensor, physics: Physics, tick: Callable[[], Any]
    ) -> tuple[Tensor, dict[str, Any]]:
        """The image (1, 2, H, W), and its scores."""
        if _is_searched(method):
            return self._at_best(method, y, physics, tick)
        if method in BASELINES:
            return self._by(build_baseline(method), y, physics, tick)
        if method == BY_FILE:
            return self._by_file(y, tick)
        y, physics = y.to(self.device), physics.clone().to(self.device)
        if method == START:
            found, seconds = timed(lambda: _start(y, physics), self.device)
            own: dict[str, Any] = {"iterations": 0}
        else:
            model = PnPilot(device=self.device)
            result, seconds = timed(lambda: model.reconstruct(y, physics), self.device)
            found, own = result.image, {"iterations": result.trace[0]["iterations"], "warnings": result.warnings}
        tick()
        return found, {**self.scan.scored(found), **own, "seconds": seconds, "device": device_name(self.device)}

    def _by_file(self, y: Tensor, tick: Callable[[], Any]) -> tuple[Tensor, dict[str, Any]]:
        """What `pnpilot reconstruct` makes of BART files that hold the samples and nothing else."""
        model = PnPilot(device=self.device)
        with tempfile.TemporaryDirectory(prefix="pnpilot-") as folder:
            file, out = Path(folder, "scan"), Path(folder, "out")
            write_cfl(file, np.moveaxis(torch.complex(y[0, 0], y[0, 1]).numpy(), 0, -1)[None])
            outcome, seconds = timed(lambda: reconstruct_file(f"{file}.cfl", out, model=model), self.device)
            found = torch.from_numpy(read_cfl(out / "scan").reshape(y.shape[-2:], order="F").copy())
        assert outcome.report is not None
        (told,) = outcome.report["images"]
        own = {name: told[name] for name in ("iterations", "warnings", "calibration")}
        tick()
        image = to_two_channels(found[None, None])
        return image, {**self.scan.scored(image), **own, "seconds": seconds, "device": device_name(self.device)}

    def _by(
        self, baseline: Baseline, y: Tensor, physics: Physics, tick: Callable[[], Any]
    ) -> tuple[Tensor, dict[str, Any]]:
        cpu = torch.device("cpu")
        answer, seconds = timed(lambda: baseline.answer(y, physics), cpu)
        own = {"iterations": int(answer.iterations[0]), "seconds": seconds, "device": device_name(cpu)}
        tick()
        return answer.image, {**self.scan.scored(answer.image), **own}

    def _at_best(
        self, method: str, y: Tensor, physics: Physics, tick: Callable[[], Any]
    ) -> tuple[Tensor, dict[str, Any]]:
        """With the best weight, searched with the truth at hand; the seconds are those of one call."""
        kind = BASELINES[method]
        known: dict[float, tuple[Tensor, dict[str, Any]]] = {}
        assert issubclass(kind, Sense)
        for weight in search(kind.weights, lambda weight: known[weight][1]["psnr"]):
            image, scores = self._by(kind(weight), y, physics, tick)
            known[weight] = image, {**scores, "weight": weight}
        return max(known.values(), key=lambda found: found[1]["psnr"])


def known_methods(from_samples: bool = False) -> list[str]:
    """The start, other people's methods for multi-coil MRI, and ours."""
    others = [name for name in BASELINES if "multi-coil" in BASELINES[name].serves]
    return [START, *others, BY_FILE if from_samples else OURS]


def search(ends: tuple[float, float], score: Callable[[float], float]) -> Iterator[float]:
    """Points to try, each of which `score` knows before the next is asked for: a grid, then closer around the best."""
    ratio = (ends[1] / ends[0]) ** (1 / (COARSE - 1))
    tried = [ends[0] * ratio**step for step in range(COARSE)]
    yield from tried
    for _ in range(FINE):
        ratio, best = ratio**0.5, max(tried, key=score)
        for point in (best / ratio, best * ratio):
            tried.append(point)
            yield point


def _is_searched(method: str) -> bool:
    return method in BASELINES and issubclass(BASELINES[method], Sense)


def _start(y: Tensor, physics: Physics) -> Tensor:
    problem = open_problem(y, physics)
    return problem.export(problem.x0())
