"""Things of a user's own, from files outside the package: they register like ours and keep to the same contracts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pnpilot import PnPilot
from pnpilot.baselines import build_baseline
from pnpilot.problems import open_problem
from pnpilot.rooms import rooms
from pnpilot.tasks import build_task
from tests.cli import PLAIN, Result, run
from tests.conftest import phantom

HERE = Path(__file__).parent
ROOMS = ("task", "problem", "solver", "denoiser", "policy", "baseline")
CONTRACTS = ("problems", "tasks", "batching", "solvers", "denoisers", "policies", "baselines")
"""The contracts of the six rooms."""
USES = ("model", "safety", "learned", "train_policy", "tables", "oracles")
"""What goes through the registries besides."""
FEWER = {
    "test_the_planes_exist_for_every_problem": "own-task-own-solver",
    "test_every_fitting_pair_stays_with_the_data": "own-solver-own-task",
    "test_actions_have_every_parameter_for_every_image": "own-policy-own-solver",
}
"""Of tests that run over pairs, the one pair that is enough here."""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, in a folder of the user's."""
    folder = tmp_path_factory.mktemp("mine")
    return Path(shutil.copy(HERE / "own_things.py", folder / "things.py"))


@pytest.fixture
def loaded(own: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Result]:
    """What `pnpilot list --with` says; what was registered is forgotten afterwards."""
    for registry in rooms().values():
        monkeypatch.setattr(registry, "_entries", {name: registry[name] for name in registry})
    monkeypatch.setattr("pnpilot.plugins._loaded", set())
    monkeypatch.setenv("PNPILOT_WITH", "")
    yield run("list", "--with", own)
    sys.modules.pop("pnpilot_with_things", None)


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    given = {**os.environ, **PLAIN, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=given, check=False, cwd=HERE.parent)


def test_a_file_of_ones_own_registers_one_thing_for_every_room(loaded: Result) -> None:
    assert loaded.returncode == 0, loaded.stderr
    for room in ROOMS:
        assert f"own-{room} " in loaded.stdout


@pytest.mark.usefixtures("loaded")
def test_a_task_a_problem_and_a_denoiser_of_ones_own_work_together() -> None:
    task = build_task("own-task")
    y, physics = task.simulate(phantom(32, 32), task.settings[0])
    assert open_problem(y, physics).name == "own-problem"
    result = PnPilot("own-denoiser").reconstruct(y, physics)
    assert result.trace[0]["solver"] == "admm"
    assert build_baseline("own-baseline")(y, physics).shape == result.image.shape


def test_things_of_ones_own_keep_to_the_contracts(own: Path) -> None:
    files = [str(HERE / f"test_{name}.py") for name in (*CONTRACTS, *USES)]
    chosen = " and ".join(["own-", *(f"(not {test} or {pair})" for test, pair in FEWER.items())])
    plugins = ("-p", "no:cacheprovider", "-p", "no:xdist")
    result = python("-m", "pytest", "-q", *plugins, "-rA", "-k", chosen, *files, PNPILOT_WITH=str(own))
    assert result.returncode == 0, result.stdout[-3000:]
    passed = [line for line in result.stdout.splitlines() if line.startswith("PASSED")]
    for name in (*CONTRACTS, *USES):
        assert any(f"test_{name}.py" in line for line in passed), f"nothing ran in test_{name}.py"
    for room in ROOMS:
        assert any(f"own-{room}" in line for line in passed), f"no contract ran over own-{room}"
    for test, pair in FEWER.items():
        assert any(f"::{test}[{pair}]" in line for line in passed), test
    trained = "test_every_solver_and_problem_trains_by_the_same_command"
    for pair in ("csmri-own-solver", "own-task-auto"):
        assert any(f"::{trained}[{pair}]" in line for line in passed), pair


def test_installed_packages_offer_modules_and_what_is_in_them(tmp_path: Path) -> None:
    """By entry points, as `module` and as `module:attribute`."""
    source = "from pnpilot.denoisers.base import DENOISERS, Denoiser\n\n"
    source += '@DENOISERS.register("from-{0}")\nclass Mine(Denoiser):\n    """Changes nothing."""\n'
    for module in ("a_module", "an_attribute"):
        (tmp_path / f"{module}.py").write_text(source.format(module))
    installed = tmp_path / "mine-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[pnpilot]\none = a_module\ntwo = an_attribute:Mine\n")
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    result = python("-m", "pnpilot", "list", "denoisers", PYTHONPATH=paths)
    assert result.returncode == 0, result.stderr
    assert "from-a_module " in result.stdout
    assert "from-an_attribute " in result.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError"),
        ("def (", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("import sys; sys.exit(0)", "SystemExit"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "broken.py").write_text(text)
    result = run("list", "--with", tmp_path / "broken.py")
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_file_that_is_not_there_is_one_line() -> None:
    result = run("--with", "nowhere.py", "list")
    assert (result.returncode, result.stderr) == (2, "pnpilot: --with nowhere.py: there is no such file\n")


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(
        "from pnpilot.solvers.base import SOLVERS\n@SOLVERS.register('admm')\nclass Mine: pass\n"
    )
    result = run("list", "--with", tmp_path / "twice.py")
    assert result.returncode == 2
    assert "two solvers are called 'admm'" in result.stderr
