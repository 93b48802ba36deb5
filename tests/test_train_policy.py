"""Training a policy by its command: every solver and problem, resuming, several processes, refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open
from torch import Tensor
from typer.testing import CliRunner

from pnpilot.cli import app
from pnpilot.denoisers.base import DENOISERS
from pnpilot.errors import BadInput, Incompatible, UnknownName
from pnpilot.policies.learned import Learned
from pnpilot.solvers import SOLVERS
from pnpilot.tasks import TASKS, build_task
from pnpilot.training import session
from pnpilot.training.arguments import DenoiserArgs, LearnerArgs, PolicyArgs, SearchArgs, UnrolledArgs
from pnpilot.training.augment import augmented
from pnpilot.training.clock import Clock
from pnpilot.training.episodes import Problems, Simulations
from pnpilot.training.learners import LEARNERS
from pnpilot.training.learners.mixed import Mixed
from pnpilot.training.train_policy import train_policy
from tests.cli import wait_for
from tests.conftest import Smoother, block_pictures

CPU = torch.device("cpu")
ROOT = Path(__file__).parent.parent


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return block_pictures(tmp_path / "images", 8, 9)


class Blunt(Smoother):
    """Has no gradient."""

    differentiable = False


@pytest.fixture
def smooth(monkeypatch: pytest.MonkeyPatch) -> None:
    DENOISERS.names()
    monkeypatch.setitem(DENOISERS._entries, "smooth", type("Smooth", (Smoother,), {"name": "smooth"}))
    monkeypatch.setitem(DENOISERS._entries, "blunt", type("Blunt", (Blunt,), {"name": "blunt"}))


def arguments(images: Path, task: str = "csmri", **changes: Any) -> PolicyArgs:
    constants = LearnerArgs(width=8)
    small: dict[str, Any] = {"batch": 2, "size": 32, "updates": 1, "held_out": 1}
    small |= {"per_decision": 2, "decisions": 2, "fewest": 1}
    return PolicyArgs(task, str(images), denoiser="smooth", learner=constants, **{"minutes": 0.05, **small, **changes})


GREY = [task for task in TASKS if 1 in TASKS[task].channels]
PAIRS = [("csmri", solver) for solver in SOLVERS] + [(task, "auto") for task in GREY if task != "csmri"]


@pytest.mark.usefixtures("smooth", "looks")
@pytest.mark.parametrize(("task", "solver"), PAIRS)
def test_every_solver_and_problem_trains_by_the_same_command(
    task: str, solver: str, images: Path, tmp_path: Path
) -> None:
    card = train_policy(arguments(images, task, solver=solver), tmp_path / "run", device=CPU)
    assert card["episodes"] == 2
    assert card["images"] == len(list(images.iterdir())) - 1  # one is held out
    assert set(card["held_out"]) == {setting.label for setting in build_task(task).settings}
    policy = Learned.find(tmp_path / "run")
    assert policy.solver.name == (solver if solver != "auto" else card["solver"])
    assert policy.denoiser == "smooth"
    torch.manual_seed(0)
    start = dict(Learned(policy.solver, **card["shape"]).network.named_parameters())
    moved = [not torch.equal(value, start[key].half().float()) for key, value in policy.network.named_parameters()]
    assert any(moved), "nothing was learnt"


@pytest.mark.usefixtures("smooth", "looks")
def test_the_model_free_learner_trains_by_the_same_command(images: Path, tmp_path: Path) -> None:
    card = train_policy(arguments(images, method="model-free"), tmp_path / "run", device=CPU)
    assert card["command"].count("--method model-free") == 1
    assert Learned.find(tmp_path / "run").name == "model-free"


@pytest.mark.usefixtures("smooth", "looks")
def test_the_card_has_the_command_that_repeats_the_run(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What differs from the defaults, and a few things always; the command line reads it back."""
    args = arguments(images, minutes=0.05, seed=3, observation="probed")
    args.learner.value_slope = 0.25
    card = train_policy(args, tmp_path / "run", device=CPU)
    command = card["command"]
    assert command == (
        "pnpilot train policy --task csmri --solver admm --denoiser smooth --data DIR --minutes 0.05 --seed 3 "
        "--observation probed --batch 2 --size 32 --per-decision 2 --decisions 2 --updates 1 --held-out 1 --fewest 1 "
        "--width 8 --value-slope 0.25"
    )
    understood: list[PolicyArgs] = []
    monkeypatch.setattr("pnpilot.training.train_policy.train_policy", lambda args, *_, **__: understood.append(args))
    assert CliRunner().invoke(app, command.split()[1:], catch_exceptions=False).exit_code == 0
    assert understood == [replace(args, data="DIR", solver="admm")]


@pytest.mark.parametrize("kind", [DenoiserArgs, UnrolledArgs, SearchArgs, PolicyArgs, LearnerArgs])
def test_every_option_has_a_line_of_help(kind: type) -> None:
    for field in fields(kind):
        assert field.name == "learner" or 10 < len(field.metadata["help"]) < 100, field.name


@pytest.mark.usefixtures("smooth", "looks")
def test_a_run_that_was_interrupted_goes_on(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = Mixed.update, []

    def interrupted(self: Mixed, *args: Any) -> dict[str, Tensor]:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, *args)

    monkeypatch.setattr(Mixed, "update", interrupted)
    args = arguments(images, minutes=0.1)
    with pytest.raises(KeyboardInterrupt):
        train_policy(args, tmp_path / "run", device=CPU)
    assert not list((tmp_path / "run").glob("learned-*"))
    card = train_policy(args, tmp_path / "run", device=CPU)
    assert card["episodes"] == len(calls) - 1 == 4
    with pytest.raises(BadInput, match="other settings"):
        train_policy(arguments(images, minutes=0.2), tmp_path / "run", device=CPU)


KILLED = """
import sys
from pathlib import Path
import torch
from pnpilot.denoisers.base import DENOISERS
from pnpilot.training.train_policy import train_policy
from tests.conftest import Smoother
from tests.test_train_policy import arguments
DENOISERS.names()
DENOISERS._entries["smooth"] = type("Smooth", (Smoother,), {"name": "smooth"})
args = arguments(Path(sys.argv[1]), minutes=600)
train_policy(args, Path(sys.argv[2]), device=torch.device("cpu"), save_every=0.0)
"""


@pytest.mark.usefixtures("smooth")
def test_a_run_that_was_killed_goes_on_where_it_was(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, checkpoint = tmp_path / "run", tmp_path / "run" / "checkpoint.safetensors"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(images), str(run)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    wait_for(checkpoint, process)
    process.kill()
    process.communicate()
    with safe_open(checkpoint, framework="pt") as file:
        kept = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
        episodes = json.loads(file.metadata()["progress"])["steps"]
    assert episodes >= 1
    seen: dict[str, Any] = {}

    def update(self: Mixed, *_: Any) -> dict[str, Tensor]:
        seen.setdefault("actor", {f"actor/{key}": value for key, value in self.policy.network.state_dict().items()})
        seen.setdefault("critic", {f"critic/{key}": value for key, value in self.critic.state_dict().items()})
        return {"critic_loss": torch.zeros(())}

    def simulations(*args: Any, **more: Any) -> Simulations:
        seen.update(more)
        return Simulations(*args, **more)

    monkeypatch.setattr(Mixed, "update", update)
    monkeypatch.setattr("pnpilot.training.policy_trainee.Simulations", simulations)
    monkeypatch.setattr(
        session, "Clock", type("Hours", (Clock,), {"share": property(lambda _: float("actor" in seen))})
    )
    card = train_policy(arguments(images, minutes=600), run, device=CPU)
    assert card["episodes"] == episodes + 1
    assert seen["first"] == episodes
    for part in ("actor", "critic"):
        assert all(torch.equal(value, kept[key]) for key, value in seen[part].items())


@pytest.mark.usefixtures("smooth", "looks")
def test_metrics_are_on_disk_while_it_learns(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pnpilot.training.progress import ProgressLine

    class Eager(ProgressLine):
        def __init__(self, title: str, *, quiet: bool = False) -> None:
            super().__init__(title, quiet=quiet)
            self.interval = -1.0

    monkeypatch.setattr(session, "ProgressLine", Eager)
    monkeypatch.setattr(session, "EXAM_SHARE", 1e9)  # as often as it is saved
    card = train_policy(arguments(images), tmp_path / "run", device=CPU, save_every=-1.0)
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert {"gain", "decisions", "critic_loss", "stop_loss", "return"} <= records[0].keys()
    exams = [record for record in records if "held_out" in record]
    assert len(exams) == card["episodes"] + 1
    assert exams[-1]["held_out"] == card["held_out"]


@pytest.mark.usefixtures("smooth", "looks")
def test_exams_do_not_eat_the_budget(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "EXAM_SHARE", 1e-9)
    train_policy(arguments(images), tmp_path / "run", device=CPU, save_every=-1.0)
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert sum("held_out" in record for record in records) == 1  # the last, when all is done


@pytest.mark.usefixtures("smooth")
def test_what_cannot_work_is_refused_before_training(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(error: type[Exception], match: str, **changes: Any) -> None:
        args = arguments(images, **{k: v for k, v in changes.items() if k != "denoiser"})
        args.denoiser = changes.get("denoiser", "smooth")
        with pytest.raises(error, match=match):
            train_policy(args, tmp_path / "run", device=CPU)
        assert not (tmp_path / "run" / "checkpoint.safetensors").exists()

    refused(Incompatible, "'blunt' has no gradient", denoiser="blunt")
    refused(Incompatible, "needs linear", task="phase", solver="amp")
    refused(UnknownName, f"unknown method 'guess'; known: {', '.join(LEARNERS)}", method="guess")
    refused(BadInput, "unknown observation 'stars'; known: watched", observation="stars")
    refused(Incompatible, "'paper' has 14 to 29 channels", task="phase", observation="paper")
    refused(BadInput, "at least 4096×4096", size=4096)
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1_000_000})())
    refused(BadInput, r"is full: 1 MB free, 500 MB needed")


def test_varied_images_are_still_images_and_differ_in_kind() -> None:
    plain = 0.2 + 0.8 * torch.rand(64, 1, 32, 48, generator=torch.Generator().manual_seed(0))
    varied = augmented(plain, torch.Generator().manual_seed(1))
    assert varied.shape == plain.shape and varied.min() >= 0 and varied.max() <= 1
    assert torch.equal(varied, augmented(plain, torch.Generator().manual_seed(1)))
    assert ((varied - plain).abs().amax((1, 2, 3)) < 1e-5).any(), "none stays as it was"
    on_black = varied[:, 0, 0, 0] < 0.01
    assert 0.3 < on_black.float().mean() < 0.7
    shares = (varied[on_black] > 0.01).float().mean((1, 2, 3))
    assert shares.min() > 0.15 and shares.max() < 0.97
    assert (varied.std((1, 2, 3)) < 0.08).any(), "none is pale"


def test_problems_do_not_depend_on_who_computes_them(images: Path) -> None:
    pictures = [np.asarray(Image.open(path)) for path in sorted(images.iterdir())]
    for task in ("csmri", "deblur"):
        alone, ahead = (
            Problems(Simulations(build_task(task), pictures, 2, 32, seed=0, first=3), CPU, workers)
            for workers in (0, 2)
        )
        for _ in range(3):
            (problem, truth), (other, other_truth) = next(alone), next(ahead)
            assert torch.equal(truth, other_truth)
            assert torch.equal(problem.y, other.y)


@pytest.mark.parametrize(("side", "shapes"), [(63, {(8, 32)}), (64, {(8, 32), (2, 64)})])
def test_every_fourth_batch_has_images_of_twice_the_size(side: int, shapes: set[tuple[int, int]]) -> None:
    """Where the folder holds images of that size."""
    pictures = [np.full((40, 50), 99, np.uint8), np.full((side, 80), 99, np.uint8)]
    simulations = Simulations(build_task("csmri"), pictures, 8, 32, seed=0, first=0)
    batches = [simulations.number(number)[1] for number in range(8)]
    found = [(len(truth), truth.shape[-1]) for truth in batches]
    assert set(found) == shapes
    assert sum(size == 64 for _, size in found) == (2 if side == 64 else 0)


def test_large_seeds_are_seeds_too(images: Path) -> None:
    pictures = [np.asarray(Image.open(path)) for path in sorted(images.iterdir())]
    drawn = [Simulations(build_task("csmri"), pictures, 2, 32, seed, first=0).number(0)[1] for seed in (0, 2**31)]
    assert not torch.equal(*drawn)


def test_two_processes_train_one_policy(images: Path, tmp_path: Path) -> None:
    """Under torchrun, through the real command."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "pnpilot", "train", "policy", "--task", "csmri", "--data", str(images)]
    command += ["--out", str(tmp_path / "run")]
    command += ["--minutes", "0.03", "--width", "8", "--smoke", "--device", "cpu"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "terminate called" not in done.stderr
    card = json.loads((tmp_path / "run" / "learned-csmri-admm.json").read_text())
    assert card["processes"] == 2
    assert Learned.find(tmp_path / "run").network is not None


SHARED = """
from pathlib import Path
import torch
from pnpilot.denoisers import Denoiser
from pnpilot.denoisers.base import freeze
from pnpilot.policies.learned import Learned
from pnpilot.training.arguments import LearnerArgs
from pnpilot.training.learners.mixed import Mixed
from pnpilot.training.parallel import processes
from tests.test_learners import CPU, ToySolver, toy

def threads():
    return sorted((task / "comm").read_text() for task in Path("/proc/self/task").iterdir())

with processes(CPU) as (rank, count, device):
    torch.manual_seed(0)
    learner = Mixed(Learned(ToySolver(), 4, per_decision=2, width=8), freeze(Denoiser()), LearnerArgs(width=8), device)
    generator = torch.Generator().manual_seed(rank)
    problem = toy(torch.full((4,), 0.02 + 0.08 * rank), generator)
    learner.update(learner.play(problem, problem.y, generator).sample(generator), 1e-3)
    for network in (learner.policy.network, learner.critic):
        own = torch.cat([parameter.detach().flatten() for parameter in network.parameters()])
        all_of_them = [torch.empty_like(own) for _ in range(count)]
        torch.distributed.all_gather(all_of_them, own)
        assert count == 2 and torch.equal(*all_of_them)
    assert any("gloo" in name for name in threads())
    import torch._dynamo, torch.distributed.nn.functional  # as others may, while there is a group
left = [name for name in threads() if "gloo" in name]
assert not left, left  # or the process aborts when it ends
"""


def test_processes_share_their_gradients(tmp_path: Path) -> None:
    """Two processes with different data end with the same weights, and end in order."""
    script = tmp_path / "share.py"
    script.write_text(SHARED)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "terminate called" not in done.stderr
