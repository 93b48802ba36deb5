"""The table of docs/operators.md: every physics of deepinv, and what becomes of it.

    python docs/operators.py       try them all and rewrite the table: some minutes

Each is built small (`catalogue.py`), measures a picture, and is handed to `PnPilot()`. The table says what it was taken
for, how its data step is solved, and the PSNR in dB of the start and of the result; or in which words it is refused.
"""

from __future__ import annotations

import inspect
import re
import warnings
from pathlib import Path
from typing import NamedTuple

import deepinv.physics
import torch
from catalogue import CATALOGUE
from deepinv.physics import Physics
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.benchmark.report import table
from pnpilot.errors import PnPilotError
from pnpilot.io.files import write_atomically
from pnpilot.problems import Problem, open_problem

PAGE = Path(__file__).parent / "operators.md"
MARKED = re.compile(r"(<!-- operators -->\n)(.*?)(<!-- end -->)", re.DOTALL)
NEEDS = {"PET": "parallelproj", "RadioInterferometry": "torchkbnufft", "TomographyWithAstra": "Astra and a GPU"}
"""What cannot be tried with what the package installs."""
BASES = {"PhysicsMultiScaler", "LinearPhysicsMultiScaler", "StackedPhysics", "ComposedPhysics"}
"""Of which others are tried."""
SIDE = 64


class Row(NamedTuple):
    """What becomes of a physics."""

    physics: str
    problem: str
    step: str
    """How the data step is solved, and what is told besides; or why there is none."""
    start: str = ""
    result: str = ""


def tried(name: str, model: PnPilot | None = None, side: int = SIDE) -> Row:
    """The row of one physics; without a model, nothing is reconstructed."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deepinv warns of defaults that will change
        physics, truth = CATALOGUE[name](side)
        y = physics(truth)
        try:
            problem = open_problem(y, physics)
        except PnPilotError as refusal:
            return Row(name, "refused", str(refusal).split(": a physics must derive")[0])
    told = "; ".join([step_of(problem), *problem.notes])
    if model is None:
        return Row(name, problem.name, told)
    start, result = problem.export(problem.x0()), model.reconstruct(y, physics).image
    return Row(name, problem.name, told, *(f"{score(image, truth):.1f}" for image in (start, result)))


def score(image: Tensor, truth: Tensor) -> float:
    """PSNR in dB, the peak being that of the truth; complex images by both their parts."""
    error = (image - truth).abs().square().mean()
    return float(20 * truth.abs().max().log10() - 10 * error.log10())


def step_of(problem: Problem) -> str:
    """How its data step is solved."""
    iterates = not getattr(problem, "closed_form", problem.name in ("masked-fourier", "amplitudes"))
    return "conjugate gradients" if iterates else "closed form"


def missing() -> set[str]:
    """Physics of deepinv that the catalogue has not."""
    kinds = {
        name for name, kind in vars(deepinv.physics).items() if inspect.isclass(kind) and issubclass(kind, Physics)
    }
    return kinds - {re.split(r"\W", name)[0] for name in CATALOGUE} - NEEDS.keys() - BASES


def drawn(rows: list[Row]) -> str:
    """The table."""
    others = [Row(name, "linear", f"not tried: it needs {what}") for name, what in NEEDS.items()]
    return table(list(Row._fields), sorted([*rows, *others], key=lambda row: row.problem == "refused"))


def main() -> None:
    """Try all, and rewrite the page."""
    rows, model = [], PnPilot()
    for name in CATALOGUE:
        rows.append(tried(name, model))
    page = MARKED.sub(lambda found: f"{found[1]}{drawn(rows)}\n{found[3]}", PAGE.read_text())
    write_atomically(PAGE, page.encode())


if __name__ == "__main__":
    main()
