"""The paper's first table: what different denoisers reach by themselves and plugged in, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ..denoisers import DENOISERS, Denoiser
from ..errors import BadInput
from ..tasks.csmri import CSMRI
from ..weights import has_weights
from .comparison import Comparison
from .data import check_datasets, dataset_folder
from .denoising import complexity, denoise_folder, milliseconds
from .policy_methods import OracleMethod
from .policy_runs import Rig
from .published import ALONE, MILLISECONDS, PLUGGED_IN
from .report import number as printed
from .results import Results

DATASETS = ("set12", "bsd68")
LEVELS = (15, 25, 50)
PNP_SET = "medical4"
PNP_SETTING = CSMRI.setting(8, 15)
PNP_POLICY = "fixed-optimal"
"""Constants searched with the truth at hand: each denoiser at its best, none with constants that favour another."""


def ready() -> list[str]:
    """The denoisers that can be built by name: their weights ship, or they need none."""
    kinds = {name: DENOISERS[name] for name in DENOISERS}
    return [name for name, kind in kinds.items() if has_weights(name) or not (kind.needs_weights or kind.adapts)]


def left_out(names: Collection[str]) -> list[str]:
    """The trainable denoisers that are not among these."""
    return [name for name in DENOISERS if DENOISERS[name].needs_weights and name not in names]


class DenoiserResults(Results):
    """Rows for each test set and level, and below them a line for each denoiser, beside the paper's."""

    def show(self, console: Console) -> None:
        """Print both tables."""
        super().show(console)
        if not self.rows:
            return
        table = Table(box=None, header_style="bold")
        table.add_column("\ndenoiser")
        for header in (
            "parameters\nmillions",
            "128×128\nGFLOP",
            "256×256\nms",
            "paper\nms",
            "Set12 σ=50\npsnr",
            "paper\npsnr",
            f"PnP x8 σ=15\n{PNP_SET} psnr",
            "paper\nMedical7 psnr",
        ):
            table.add_column(header, justify="right")
        for method, rows in self._by_method().items():
            costs = next(iter(rows.values()))
            alone, plugged_in = rows.get(("set12", "sigma=50"), {}), rows.get((PNP_SET, PNP_SETTING.label), {})
            numbers = (
                *(costs.get(key) for key in ("parameters_millions", "gflop", "milliseconds", "paper_milliseconds")),
                *(alone.get(key) for key in ("psnr", "paper")),
                *(plugged_in.get(key) for key in ("psnr", "paper_medical7")),
            )
            table.add_row(method, *(printed(number, "cost") for number in numbers))
        console.print(table)

    def _by_method(self) -> dict[str, dict[tuple[str, str], dict[str, Any]]]:
        found: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
        for row in self.rows:
            found.setdefault(row["method"], {})[row["dataset"], row["setting"]] = row
        return found


@dataclass
class DenoiserTable:
    """What is measured: every denoiser on every test set at every level, and plugged in."""

    denoisers: Mapping[str, Denoiser]
    data: Path
    datasets: Sequence[str] = DATASETS
    pnp: bool = True
    batch: int = 16
    """Points × images of the search for the best constants."""
    images: int | None = None
    seed: int = 0

    def __len__(self) -> int:
        """How many rows."""
        return len(self.denoisers) * (len(self.datasets) * len(LEVELS) + self.pnp)

    def check(self) -> None:
        """Refuse missing test sets."""
        check_datasets(self.data, self.datasets, self.images)
        if self.pnp:
            try:
                check_datasets(self.data, [PNP_SET], self.images)
            except BadInput as error:
                raise BadInput(f"{error}; --no-pnp does without it") from error

    def run(self, results: Results, tick: Callable[[str], Any] = lambda _: None) -> None:
        """Denoise, then reconstruct; `tick` is called for each row."""
        # The paper's numbers are means over whole sets.
        alone, plugged_in = (ALONE, PLUGGED_IN) if self.images is None else ({}, {})
        for name, denoiser in self.denoisers.items():
            costs = _costs(name, denoiser)
            for dataset in self.datasets:
                folder = dataset_folder(self.data, dataset)
                for level in LEVELS:
                    scores = list(denoise_folder(denoiser, folder, level, seed=self.seed, images=self.images))
                    paper = alone.get(dataset, {}).get(f"sigma={level}", {}).get(name)
                    results.add(dataset, f"sigma={level}", name, scores, paper, **costs)
                    tick(f"{name} {dataset} sigma={level}")
            if self.pnp:
                (row,) = self._plugged_in(denoiser).measured()
                similar = {"paper_medical7": plugged_in[name]} if name in plugged_in else {}
                results.add(row.dataset, row.setting, name, row.images, policy=row.method, **similar, **costs)
                tick(f"{name} {row.dataset} {row.setting}")

    def _plugged_in(self, denoiser: Denoiser) -> Comparison:
        method = OracleMethod(PNP_POLICY, Rig("admm", denoiser, self.batch))
        return Comparison(
            CSMRI(),
            self.data,
            datasets=[PNP_SET],
            settings=[PNP_SETTING],
            methods=[method],
            device=denoiser.device,
            images=self.images,
            seed=self.seed,
        )


def _costs(name: str, denoiser: Denoiser) -> dict[str, float]:
    paper = {"paper_milliseconds": MILLISECONDS[name]} if name in MILLISECONDS else {}
    found = {**complexity(denoiser), "milliseconds": milliseconds(denoiser)}
    return {**{key: round(value, 3) for key, value in found.items()}, **paper}
