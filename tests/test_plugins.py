"""Things of a user's own, from a file outside the package: they register like ours and keep to the same contracts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CONTRACTS = ("tasks", "batching", "solvers", "denoisers", "policies", "model")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, in a folder of the user's."""
    folder = tmp_path_factory.mktemp("mine")
    return Path(shutil.copy(HERE / "own_things.py", folder / "things.py"))


def python(*arguments: str, own: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "160", "NO_COLOR": "1"}
    if own is not None:
        environment["PNPILOT_WITH"] = str(own)
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=HERE.parent)


def test_a_file_of_ones_own_registers_one_thing_for_every_room(own: Path) -> None:
    result = python("-m", "pnpilot", "list", "--with", str(own))
    assert result.returncode == 0, result.stderr
    for room in ("task", "problem", "solver", "denoiser", "policy", "baseline"):
        assert f"own-{room} " in result.stdout


def test_things_of_ones_own_keep_to_the_contracts(own: Path) -> None:
    files = [str(HERE / f"test_{name}.py") for name in CONTRACTS]
    result = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", "-k", "own-", *files, own=own)
    assert result.returncode == 0, result.stdout[-3000:]
    for thing in ("task", "solver", "denoiser", "policy"):
        assert any(f"own-{thing}" in line for line in result.stdout.splitlines() if line.startswith("PASSED")), thing


def test_a_task_a_problem_and_a_baseline_of_ones_own_work_together(own: Path) -> None:
    script = (
        "import torch; from pnpilot import PnPilot; from pnpilot.tasks import build_task; "
        "from pnpilot.problems import open_problem; from pnpilot.baselines import build_baseline; "
        "task = build_task('own-task'); y, physics = task.simulate(torch.rand(2, 1, 32, 32), task.settings[0]); "
        "assert open_problem(y, physics).name == 'own-problem'; "
        "result = PnPilot('own-denoiser').reconstruct(y, physics); assert result.trace[0]['solver'] == 'admm'; "
        "assert build_baseline('own-baseline')(y, physics).shape == result.image.shape"
    )
    environment = {**os.environ, "PNPILOT_WITH": str(own)}
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [("import nothing_of_this_name", "ModuleNotFoundError"), ("def (", "SyntaxError"), ("1 / 0", "ZeroDivisionError")],
)
def test_a_file_that_cannot_be_loaded_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "broken.py").write_text(text)
    result = python("-m", "pnpilot", "list", "--with", str(tmp_path / "broken.py"))
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_file_that_is_not_there_is_one_line() -> None:
    result = python("-m", "pnpilot", "--with", "nowhere.py", "list")
    assert (result.returncode, result.stderr) == (2, "pnpilot: --with nowhere.py: there is no such file\n")


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(
        "from pnpilot.solvers.base import SOLVERS\n@SOLVERS.register('admm')\nclass Mine: pass\n"
    )
    result = python("-m", "pnpilot", "list", "--with", str(tmp_path / "twice.py"))
    assert result.returncode == 2
    assert "two solvers are called 'admm'" in result.stderr
