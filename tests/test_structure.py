"""The shape of the code: who may import whom, and that every file of a room registers something."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

import pytest

import pnpilot
from pnpilot.benchmark.operators import OPERATORS
from pnpilot.benchmark.tables import TABLES
from pnpilot.recon.modalities import MODALITIES
from pnpilot.registry import Registry
from pnpilot.rooms import rooms
from pnpilot.solvers import Solver
from pnpilot.training.learners import LEARNERS

ROOT = Path(pnpilot.__file__).parent
ROOMS: dict[str, Registry[Any]] = rooms()
INSIDE = {"readers": "io/readers", "writers": "io/writers"}
ALL_ROOMS = {INSIDE.get(name, name): registry for name, registry in ROOMS.items()}
ALL_ROOMS |= {"benchmark/tables": TABLES, "benchmark/operators": OPERATORS}
ALL_ROOMS |= {"recon/modalities": MODALITIES, "training/learners": LEARNERS}
LOWER_FIRST = [
    {"errors", "plugins", "phase", "provenance"},
    {"registry", "types", "io", "metrics", "devices"},
    {"denoisers", "weights", "physics"},
    {"problems", "tasks"},
    {"solvers", "prior", "simulation", "whitening"},
    {"transition", "trace", "step"},
    {"policies"},
    {"reconstruct", "guess"},
    {"safety"},
    {"model", "baselines"},
    {"rooms"},
    {"benchmark", "plots", "report", "recon"},
    {"training", "demo"},
    {"cli"},
]
DEEPINV_MAY_BE_IMPORTED_IN = {"physics", "problems", "tasks", "baselines", "model", "demo", "benchmark", "recon"}


def level(part: str) -> int:
    return next(index for index, parts in enumerate(LOWER_FIRST) if part in parts)


def imports(path: Path) -> set[str]:
    """Parts of the package that a file imports, at any depth of nesting."""
    found = set()
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - (node.level - 1)]
            names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
            found |= {base[0]} if base else set(names)
    return found - {"__version__"}


FILES = sorted(
    path for path in ROOT.rglob("*.py") if path.name not in ("__init__.py", "__main__.py") or path.parent != ROOT
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards(path: Path) -> None:
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for other in imports(path) - {own}:
        assert level(other) <= level(own), f"{own} imports {other}"
        assert not (level(other) == level(own) and {own, other} <= ROOMS.keys()), f"room {own} imports room {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_deepinv_stays_at_the_border(path: Path) -> None:
    tree = ast.parse(path.read_text())
    modules = {
        name.split(".")[0]
        for node in tree.body
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
    }
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert "deepinv" not in modules or own in DEEPINV_MAY_BE_IMPORTED_IN


@pytest.mark.parametrize("room", ALL_ROOMS)
def test_every_file_of_a_room_registers_something(room: str) -> None:
    registry = ALL_ROOMS[room]
    homes = {registry[name].__module__ for name in registry}
    for path in (ROOT / room).glob("*.py"):
        if not path.name.startswith("_") and path.name != "base.py":
            module = ".".join(("pnpilot", *Path(room).parts, path.stem))
            assert importlib.import_module(module).__name__ in homes, path


def test_a_folder_with_a_contract_is_a_room() -> None:
    assert {str(path.parent.relative_to(ROOT)) for path in ROOT.rglob("base.py")} == set(ALL_ROOMS)


@pytest.mark.parametrize("room", ALL_ROOMS)
def test_every_entry_has_a_one_line_summary(room: str) -> None:
    registry = ALL_ROOMS[room]
    for name in registry:
        assert 10 < len(registry.summary(name)) < 130, name


def test_a_thing_defined_again_takes_the_place_of_the_old_one() -> None:
    """As when a cell of a notebook is run twice."""
    registry: Registry[object] = Registry("thing", "pnpilot.solvers")
    for _ in range(2):
        again = registry.register("once")(type("Once", (), {}))
    assert registry["once"] is again
    assert registry.summary("once") == ""


def test_a_room_that_cannot_be_imported_says_so_every_time() -> None:
    registry: Registry[object] = Registry("thing", "pnpilot.nowhere")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError):
            registry.names()


def test_what_cannot_be_built_is_refused_when_it_is_registered() -> None:
    registry: Registry[Any] = Registry("solver", "pnpilot.solvers")
    with pytest.raises(TypeError, match="the solver 'half' does not define init, step"):
        registry.register("half")(type("Half", (Solver,), {}))
    with pytest.raises(TypeError, match="a solver is a class, and 'made' is a function"):
        registry.register("made")(lambda: None)  # type: ignore[arg-type]


def test_two_things_of_one_name_are_refused() -> None:
    registry: Registry[object] = Registry("thing", "pnpilot.solvers")
    registry.register("twice")(type("First", (), {}))
    with pytest.raises(ValueError, match="two things are called 'twice'"):
        registry.register("twice")(type("Second", (), {}))
