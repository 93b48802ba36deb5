"""Batches of operators are joined and split exactly, or refused."""

from __future__ import annotations

import pytest
import torch
from deepinv.physics import GaussianNoise, Inpainting, LinearPhysics
from hypothesis import given, settings
from hypothesis import strategies as st

from pnpilot import PnPilot
from pnpilot.denoisers import Denoiser
from pnpilot.errors import Incompatible
from pnpilot.physics import joined, selected
from pnpilot.problems import Hints, open_problem
from pnpilot.tasks import TASKS, Setting, Task, build_task
from tests.conftest import phantom
from tests.contracts import assert_close, pictures


def mixtures(task: Task) -> list[Setting]:
    """Different settings for the images of one batch, as they are drawn in training and as they are in the table."""
    drawn = task.draw(2, torch.Generator().manual_seed(1))
    return [*drawn, task.settings[0], task.settings[-1]]


UNFINISHED = {"varying-blur"}
"""Conjugate gradients stop elsewhere for an image of a batch than for one by itself, by rounding."""


@pytest.mark.parametrize("name", TASKS)
def test_a_batch_of_different_settings_equals_one_by_one_or_is_refused(name: str, smoother: Denoiser) -> None:
    task = build_task(name)
    own = mixtures(task)
    truth = pictures(task, batch=len(own))
    try:
        y, physics = task.simulate(truth, own, seed=5)
    except Incompatible as refusal:
        assert "cannot share a batch" in str(refusal)
        own = [task.settings[0]] * len(own)
        y, physics = task.simulate(truth, own, seed=5)
    model = PnPilot(smoother, policy="fixed", peak=1.0, real=True)
    together, levels = model(y, physics), open_problem(y, physics, Hints(peak=1.0)).units.sigma_n
    for place, setting in enumerate(own):
        # What is drawn for an image depends on its place in the batch: the whole batch, and one operator of it.
        alone_y, alone_physics = task.simulate(truth, [setting] * len(own), seed=5)
        index = torch.tensor([place])
        one = selected(alone_physics, index, len(own))
        assert torch.equal(alone_y[index], y[index])
        assert_close(model(y[index], one), together[index], 2e-4 if name in UNFINISHED else 1e-4)
        level = open_problem(y[index], one, Hints(peak=1.0)).units.sigma_n
        assert (levels is None) == (level is None)
        if levels is not None and level is not None:
            assert_close(levels[index], level)


@pytest.mark.parametrize("name", TASKS)
def test_parts_of_a_batch_in_any_order(name: str) -> None:
    task = build_task(name)
    truth = pictures(task, batch=4)
    y, physics = task.simulate(truth, task.settings[0], seed=2)
    index = torch.tensor([3, 0, 0, 2])
    part = selected(physics, index, 4)
    clean = physics.A(task.embed(truth))
    assert_close(part.A(task.embed(truth)[index]), clean[index])
    problem = open_problem(y, physics, Hints(peak=1.0))
    chosen = problem.select(index)
    again = open_problem(y[index], part, Hints(peak=1.0))
    assert_close(chosen.y, again.y)
    assert_close(chosen.grad(again.x0()), again.grad(again.x0()), 1e-4)


def test_noise_levels_follow_their_images() -> None:
    task, truth = build_task("inpainting"), phantom(32, 32, 3)
    own = [task.settings[0], task.named("kept=0.2 sigma=5"), task.settings[0]]
    own[2] = type(task).setting(0.5, 20)  # type: ignore[attr-defined]
    _, physics = task.simulate(truth, own)
    assert (255 * physics.noise_model.sigma).tolist() == pytest.approx([5, 5, 20])
    assert (255 * selected(physics, torch.tensor([2, 0]), 3).noise_model.sigma).tolist() == pytest.approx([20, 5])


def test_what_cannot_be_joined_is_refused_with_the_reason() -> None:
    truth = phantom(32, 32, 2)
    for name, reason in (
        ("deblur", "the shapes of their filter"),
        ("super-resolution", "their factor differs"),
        ("tomography", "shapes of their"),
    ):
        task = build_task(name)
        with pytest.raises(Incompatible, match=reason):
            task.simulate(truth, list(task.settings))


def test_a_join_that_would_measure_something_else_is_refused() -> None:
    class Turned(Inpainting):
        """Keeps its own direction where no buffer shows it."""

        def A(self, x: torch.Tensor, **_: object) -> torch.Tensor:
            return super().A(x.flip(-1) if self.turned() else x)

    truth = phantom(16, 16, 2)
    operators = [Turned((1, 16, 16), mask=torch.ones(1, 1, 16, 16), noise_model=GaussianNoise(0.1)) for _ in range(2)]
    operators[0].turned, operators[1].turned = (lambda: True), (lambda: False)
    clean = [one.A(image) for one, image in zip(operators, truth.split(1), strict=True)]
    with pytest.raises(Incompatible, match="measure something else"):
        joined(operators, truth, clean)


class OwnGain(Inpainting):
    """Every image has a gain of its own, in a tensor that is no buffer."""

    gain: torch.Tensor

    def A(self, x: torch.Tensor, **_: object) -> torch.Tensor:
        return self.gain * super().A(x)

    def A_adjoint(self, y: torch.Tensor, **_: object) -> torch.Tensor:
        return super().A_adjoint(self.gain * y)


def test_a_batch_whose_parts_would_be_another_operator_is_refused(smoother: Denoiser) -> None:
    physics = OwnGain((1, 16, 16), mask=torch.ones(1, 1, 16, 16), noise_model=GaussianNoise(0.01))
    physics.gain = torch.tensor([1.0, 2.0, 3.0])[:, None, None, None]
    y = physics.A(phantom(16, 16, 3))
    with pytest.raises(Incompatible, match="parts of this batch would get another OwnGain"):
        open_problem(y, physics)
    physics.gain = physics.gain[1:2]
    assert len(open_problem(y[1:2], physics)) == 1


def test_a_buffer_that_all_images_share_is_not_cut() -> None:
    """As many weightings as images, by chance."""

    class Weighted(LinearPhysics):
        """One image behind several weightings."""

        def __init__(self, weights: torch.Tensor) -> None:
            super().__init__(noise_model=GaussianNoise(0.01))
            self.register_buffer("weights", weights)

        def A(self, x: torch.Tensor, **_: object) -> torch.Tensor:
            return self.weights[:, 0] * x

        def A_adjoint(self, y: torch.Tensor, **_: object) -> torch.Tensor:
            return (self.weights[:, 0] * y).sum(1, keepdim=True)

    physics, truth = Weighted(torch.rand(4, 1, 16, 16)), phantom(16, 16, 4)
    problem = open_problem(physics.A(truth), physics, Hints(peak=1.0))
    index = torch.tensor([2, 1])
    assert_close(problem.select(index).A(truth[index]), problem.A(truth)[index])


def test_tensors_that_are_no_buffers_are_compared_too() -> None:
    operators = [OwnGain((1, 16, 16), mask=torch.ones(1, 1, 16, 16), noise_model=GaussianNoise(0.1)) for _ in range(2)]
    truth = phantom(16, 16, 2)
    for gain, operator in enumerate(operators):
        operator.noise_model.level = torch.tensor(float(gain))
        operator.gain = torch.ones(1)
    clean = [one.A(image) for one, image in zip(operators, truth.split(1), strict=True)]
    with pytest.raises(Incompatible, match="noise model's level differs"):
        joined(operators, truth, clean)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    height=st.integers(17, 40),
    width=st.integers(17, 40),
    accelerations=st.lists(st.floats(1.5, 8), min_size=2, max_size=3),
    kind=st.sampled_from(["radial", "cartesian", "random"]),
)
def test_any_masks_share_a_batch(height: int, width: int, accelerations: list[float], kind: str) -> None:
    task = build_task("csmri")
    own = [type(task).setting(a, 5 + i, kind) for i, a in enumerate(accelerations)]  # type: ignore[attr-defined]
    truth = phantom(height, width, len(own))
    y, physics = task.simulate(truth, own)
    problem = open_problem(y, physics, Hints(peak=1.0))
    assert problem.units.sigma_n is not None
    assert (255 * problem.units.sigma_n).tolist() == pytest.approx([5 + i for i in range(len(own))], rel=1e-4)
    for place in range(len(own)):
        index = torch.tensor([place])
        one = open_problem(y[index], selected(physics, index, len(own)), Hints(peak=1.0))
        assert_close(one.x0(), problem.x0()[index])
