"""Training with a solver or learner of one's own: what the contracts leave free works, what cannot work is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from deepinv.physics import MRI
from torch import Tensor

from pnpilot.denoisers.base import DENOISERS
from pnpilot.errors import BadInput
from pnpilot.policies.learned import Learned
from pnpilot.problems import Problem
from pnpilot.problems.base import PROBLEMS, problem_type
from pnpilot.problems.masked_fourier import MaskedFourier
from pnpilot.solvers import SOLVERS
from pnpilot.solvers.hqs import HQS
from pnpilot.tasks import TASKS
from pnpilot.tasks.csmri import CSMRI
from pnpilot.training.arguments import LearnerArgs, PolicyArgs
from pnpilot.training.learners import LEARNERS
from pnpilot.training.learners.mixed import Mixed
from pnpilot.training.replay import Moments
from pnpilot.training.train_policy import train_policy
from pnpilot.types import Denoise, Range
from tests.conftest import Smoother, block_pictures


class Third(HQS):
    """Shows a plane that is none of its variables; a default lies at the end of its range."""

    params = {**HQS.params, "mu": Range(1e-4, 1.0, 1e-4)}

    def planes(self, state: Any, problem: Problem) -> list[Tensor]:
        """Both variables, and their difference."""
        return [*super().planes(state, problem), state.x - state.z]


class Counted(HQS):
    """Forgets to say which of its variables are images."""

    class State(NamedTuple):
        """One image, and a number for each."""

        x: Tensor
        taken: Tensor

    images = State._fields

    def init(self, problem: Problem) -> Any:
        return self.State(problem.x0(), torch.zeros(len(problem)))

    def step(self, state: Any, problem: Problem, denoise: Denoise, *, sigma: Tensor, mu: Tensor) -> Any:
        return self.State(problem.prox(denoise(state.x, sigma), mu), state.taken + 1)


class Quiet(Mixed):
    """Has a number of its own to tell, and no other."""

    def update(self, moments: Moments, rate: float) -> dict[str, Tensor]:
        super().update(moments, rate)
        return {"luck": torch.tensor(0.125)}


class Colourful(CSMRI):
    """Takes no grey images."""

    channels = (3,)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, looks: None) -> None:
    things = ((SOLVERS, "third", Third), (SOLVERS, "counted", Counted), (LEARNERS, "learned", Quiet))
    for registry, name, kind in (*things, (DENOISERS, "smooth", Smoother), (TASKS, "colourful", Colourful)):
        registry.names()
        monkeypatch.setitem(registry._entries, name, type(kind.__name__, (kind,), {"name": name}))


def train(folder: Path, solver: str, task: str = "csmri") -> dict[str, Any]:
    images = block_pictures(folder / "images", 8, 9)
    args = PolicyArgs(task, str(images), solver, "smooth", minutes=0.05, batch=2, size=32, per_decision=2, decisions=2)
    args.held_out, args.updates, args.learner = 1, 1, LearnerArgs(width=8)
    return train_policy(args, folder / "out", device=torch.device("cpu"))


@pytest.mark.usefixtures("own")
def test_a_solver_with_more_planes_than_variables_trains_and_loads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pnpilot.training.progress.ProgressLine.update", lambda self, _, words: self.say(words))
    monkeypatch.setattr("pnpilot.training.session._Timer.due", lambda _: True)
    card = train(tmp_path, "third")
    policy = Learned.read(tmp_path / "out")
    assert policy.network.encoder.channels == card["shape"]["channels"] == 9
    assert "luck 0.125" in capsys.readouterr().err


@pytest.mark.usefixtures("own")
def test_a_variable_that_is_no_image_is_named_before_training(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="the 'taken' of 'counted' is none: name its images in `images`"):
        train(tmp_path, "counted")


@pytest.mark.usefixtures("own")
def test_a_task_without_grey_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="trained on grey images, and the task 'colourful' takes none"):
        train(tmp_path, "admm", "colourful")


def test_of_two_problems_for_one_physics_the_later_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    PROBLEMS.names()
    monkeypatch.setattr(PROBLEMS, "_entries", dict(PROBLEMS._entries))
    physics = MRI(mask=torch.ones(8, 8))
    assert problem_type(physics) is MaskedFourier
    mine = PROBLEMS.register("a-fourier-of-ones-own")(type("Mine", (MaskedFourier,), {}))
    monkeypatch.setattr(MaskedFourier, "name", "masked-fourier")
    assert problem_type(physics) is mine
