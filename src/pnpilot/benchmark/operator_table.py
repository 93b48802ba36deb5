"""The table of operators: every operator with every method that applies to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..denoisers import Denoiser
from ..errors import Incompatible, UnknownName, first_line
from .cells import Cell, Cells
from .comparison import Comparison, Condition, Tick, depends_on, image_set
from .methods import Method, Rows
from .operator_methods import COLUMNS, operator_rows
from .operator_results import OperatorResults
from .operators import Operator, build_operator
from .oracles import COARSE, REFINEMENTS
from .policy_runs import Rig
from .timing import timed

PIXELS = 128 * 128
"""A batch is for images of this size; of larger ones it holds fewer."""
SEARCHED = {"fixed-optimal": COARSE**2 + 8 * REFINEMENTS, "oracle": COARSE**2 + 16 * REFINEMENTS}
"""About how many constants are tried."""


class Shown(dict[str, Tensor]):
    """One image by several methods, with the truth."""

    def __init__(self, title: str, truth: Tensor) -> None:
        super().__init__()
        self.title, self.truth = title, truth


@dataclass
class OperatorTable:
    """What is measured, and the pictures that came out of it."""

    data: Path
    names: Sequence[str]
    denoiser: Denoiser
    device: torch.device
    wanted: Sequence[str] = ()
    """Methods; default `COLUMNS` and the policies."""
    images: int | None = None
    batch: int = 8
    policies: Mapping[str, Path] = field(default_factory=dict)
    shown: list[Shown] = field(default_factory=list, init=False)

    @property
    def columns(self) -> list[str]:
        """The methods in the order of the table."""
        return list(self.wanted) or [*COLUMNS, *self.policies]

    def check(self) -> None:
        """Refuse what is missing or unknown before any work is done."""
        for name in self.names:
            operator = build_operator(name)
            operator.images(self.data, 1)
            rows = self._rows(operator, self.batch)
            operator.setting(self.data)
            for method in self.columns:
                if method not in {*COLUMNS, *rows}:
                    raise UnknownName(
                        f"unknown method {method!r}; known: {', '.join({**dict.fromkeys(COLUMNS), **rows})}"
                    )

    def __len__(self) -> int:
        """How many reconstructions, refused ones included."""
        return sum(build_operator(name).count(self.data, self.images) for name in self.names) * len(self.columns)

    def calls(self) -> int:
        """About how often the denoiser is called, counted in grey images of 128×128 pixels; searches are most of it."""
        iterations = sum(30 * SEARCHED.get(name, 1) for name in self.columns)
        operators = map(build_operator, self.names)
        return sum(own.count(self.data, self.images) * own.pixels for own in operators) * iterations // PIXELS

    def run(
        self, results: OperatorResults, cells: Cells, tick: Tick, say: Callable[[str], Any] = lambda _: None
    ) -> None:
        """Enter a row per operator and method as soon as it is known; `say` is told what every operator took."""
        results.content |= {"operators": {}, "left_out": {}}
        for name in self.names:
            _, seconds = timed(partial(self._measure, build_operator(name), results, cells, tick), self.device)
            say(f"{name}: {seconds:.1f} s")

    def _measure(self, operator: Operator, results: OperatorResults, cells: Cells, tick: Tick) -> None:
        bench = Bench.of(operator, self, cells)
        images = bench.condition.images
        results.content["operators"][operator.name] = operator.told(self.data, images.names)
        shown = Shown(operator.name, images.truth[images.shown])
        rows = self._rows(operator, bench.plan.batch)
        for column in self.columns:
            try:
                if column not in rows:
                    raise Incompatible(f"no policy ships for the task {operator.task!r}")
                method = rows[column]()
                scores = bench.scores(method, tick)
                shown[column] = bench.picture(method)
            except Incompatible as refusal:
                results.content["left_out"].setdefault(operator.name, {})[column] = first_line(refusal)
                for _ in images.names:
                    tick(f"{operator.name} {column}")
                continue
            paper = operator.paper(column, images.names)
            labels = {"group": operator.group, "dataset": operator.dataset}
            results.add(method=column, setting=operator.name, images=scores, paper=paper, **labels)
            if operator.published:
                results.add_images(operator.name, column, scores, operator.published.get(column, {}), **labels)
        self.shown.append(shown)

    def _rows(self, operator: Operator, batch: int) -> Rows:
        return operator_rows(operator.built(), Rig("auto", self.denoiser, batch), self.device, self.policies)


@dataclass
class Bench:
    """One operator with its data, on which methods are measured one after the other."""

    operator: Operator
    plan: Comparison
    condition: Condition
    cells: Cells

    @classmethod
    def of(cls, operator: Operator, table: OperatorTable, cells: Cells) -> Bench:
        """Simulate."""
        names, truth = operator.images(table.data, table.images)
        y, physics, task = operator.simulate(truth.to(table.device), table.data)
        plan = Comparison(task, table.data, [operator.dataset], [], [], table.device, operator.size)
        plan.batch, plan.channels, plan.seed = (
            max(1, table.batch * PIXELS // operator.pixels),
            operator.channels,
            operator.seed,
        )
        return cls(operator, plan, Condition(image_set(names, truth), y, physics), cells)

    def scores(self, method: Method, tick: Tick) -> list[dict[str, Any]]:
        """Image by image; known ones are read."""
        found = self.plan.filled(self.cells, self._cell(method), method, self.condition, tick)
        return [{"image": name, "seed": self.operator.seed, **own} for name, own in found.items()]

    def picture(self, method: Method) -> Tensor:
        """The image that is shown (C, H, W); made again if it was not kept."""
        images, cell = self.condition.images, self._cell(method)
        kept = self.cells.picture(cell, depends_on(method, images), self.condition.identity(images.shown))
        if kept is not None:
            return kept
        (places,) = self.plan.batches(method, [images.shown], images)
        found, _ = self.plan.reconstruct(self.cells, cell, method, self.condition, places)
        return found[places.index(images.shown)]

    def _cell(self, method: Method) -> Cell:
        own = self.operator
        return Cell(own.dataset, own.name, method.name, own.seed, own.size, None, own.channels)
