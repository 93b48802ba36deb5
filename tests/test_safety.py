"""Images that end far from their data are repaired, policies keep to what they know, and nothing is lost silently."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from deepinv.physics import BlurFFT, GaussianNoise
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.denoisers import Denoiser
from pnpilot.denoisers.base import freeze
from pnpilot.errors import BadInput
from pnpilot.metrics import psnr
from pnpilot.model import Reconstruction
from pnpilot.policies.fixed import Fixed
from pnpilot.prior import bounded
from pnpilot.problems import Hints, Problem, open_problem
from pnpilot.reconstruct import rollout
from pnpilot.safety import EXPLAINED, SMALL
from pnpilot.solvers import build_solver
from pnpilot.tasks import TASKS, build_task
from pnpilot.types import Action
from tests.conftest import Smoother, phantom
from tests.contracts import assert_close, pictures

TOO_MUCH = 69 / 255
"""A strength that schedules do not happen to set."""


class Careless(Fixed):
    """Denoises far too much and stops at once, as a policy trained for something else would."""

    name = "careless"
    stops = True
    careful = 0
    """How many decisions it takes well before that."""

    def __call__(self, problem: Problem, state: Any, t: int) -> Action:
        if t < self.careful:
            return self.constant(problem, sigma=0.01)
        return self.constant(problem, sigma=TOO_MUCH)._replace(stop=problem.all_active())


class Fickle(Careless):
    """Comes near to the data first."""

    name = "fickle"
    careful = 15


class Flattening(Smoother):
    """Leaves little of an image at the strength that the careless policy asks for."""

    def residual(self, x: Tensor, sigma: Tensor) -> Tensor:
        return torch.where((sigma - TOO_MUCH).abs() < 1e-4, -0.9 * x, super().residual(x, sigma))


def before_and_after(name: str, policy: type[Careless]) -> tuple[Problem, Tensor, Tensor, Reconstruction]:
    """A problem, how far its images are from their data unrepaired and repaired (B,), and all that was said."""
    task = build_task(name)
    y, physics = task.simulate(pictures(task), task.settings[0])
    problem = open_problem(y, physics, Hints(peak=1.0, real=True))
    solver, denoiser = build_solver("auto", problem.offers), freeze(Flattening())
    *_, last = rollout(problem, solver, denoiser, policy(solver, policy.careful + 1))
    result = PnPilot(denoiser, policy=policy(solver, policy.careful + 1), peak=1.0, real=True).reconstruct(y, physics)
    assert torch.isfinite(result.image).all()
    images = bounded(solver.output(last.state), problem.units), task.extract(result.image)
    before, after = (problem.fidelity(image.to(problem.x0().dtype)) for image in images)
    return problem, before, after, result


def small_distance(problem: Problem) -> Tensor:
    """What noise, or a twentieth of the data, explains (B,)."""
    return (SMALL * problem.fidelity(torch.zeros_like(problem.x0()))).clamp_min(EXPLAINED)


@pytest.mark.parametrize("name", TASKS)
def test_no_image_ends_further_from_its_data_than_noise_explains(name: str) -> None:
    """An image within that distance is left alone; also where the start is further off, as in phase retrieval."""
    problem, before, after, result = before_and_after(name, Careless)
    limit = small_distance(problem)
    assert (after <= 1.001 * limit).all()
    for record, was, now, most in zip(result.trace, before, after, limit, strict=True):
        assert record.get("fallback") == ("failed under 'careless'" if was > most else None)
        assert now < 0.5 * was if was > most else now == was
    assert any("failed under the policy 'careless'" in line for line in result.warnings) == (before > limit).any()


@pytest.mark.parametrize("name", TASKS)
def test_an_image_that_comes_near_to_its_data_and_leaves_them_is_repaired(name: str) -> None:
    """However far off its start was."""
    problem, before, after, result = before_and_after(name, Fickle)
    assert (before > small_distance(problem)).all()
    assert (after < 0.5 * before).all()
    assert [record["fallback"] for record in result.trace] == ["failed under 'fickle'"] * 2
    assert any("images 0, 1 failed under the policy 'fickle': 'schedule' took over" in w for w in result.warnings)


@pytest.mark.parametrize(("own", "other"), [("csmri", "inpainting"), ("csmri", "deblur"), ("phase", "tomography")])
def test_a_policy_is_not_used_on_an_operator_it_does_not_know(own: str, other: str) -> None:
    task, truth = build_task(other), phantom(32, 32, 1)
    y, physics = task.simulate(truth, task.settings[0])
    model = PnPilot.from_pretrained(own)
    with pytest.warns(UserWarning, match=rf"was trained for .*, not for {type(physics).__name__}: 'schedule'"):
        x = model(y, physics)
    assert torch.equal(x, PnPilot()(y, physics))
    *_, last = model.steps(y, physics)
    assert (last.trace[0]["policy"], len(last.warnings)) == ("schedule", 1)


@pytest.fixture(scope="module")
def turned() -> tuple[Tensor, Any]:
    """Three slices of k-space: a real image, the same with a phase, and another real one."""
    task = build_task("csmri")
    truth = phantom(48, 48, 3)
    y, physics = task.simulate(truth, task.named("x2 sigma=5"))
    angle = torch.linspace(0, 2, 48).expand(48, 48) + 0.5
    image = truth[1] * torch.polar(torch.ones_like(angle), angle)
    y[1:2] = physics.noise(physics.A(torch.cat([image.real, image.imag])[None]))[:1] * (physics.mask[:1] != 0)
    return y, physics


def test_a_policy_trained_on_real_images_leaves_others_to_the_schedule(turned: tuple[Tensor, Any]) -> None:
    y, physics = turned
    model = PnPilot.from_pretrained("csmri")
    with pytest.warns(UserWarning, match=r"trained on real images, .*: 'schedule' .* is used instead$"):
        alone = model(y[1:2], physics)
    assert torch.equal(alone, PnPilot()(y[1:2], physics))


def test_real_images_keep_their_policy_beside_one_with_a_phase(turned: tuple[Tensor, Any]) -> None:
    y, physics = turned
    model = PnPilot.from_pretrained("csmri")
    result = model.reconstruct(y, physics)
    assert [line.endswith("is used instead for image 1") for line in result.warnings] == [True]
    assert [record["policy"] for record in result.trace] == ["learned", "schedule", "learned"]
    assert result.trace[1]["fallback"] == "unknown to 'learned'"
    for place in range(3):
        alone = model.reconstruct(y[place : place + 1], physics)
        assert alone.trace[0]["parameters"].keys() == result.trace[place]["parameters"].keys()
        assert_close(result.image[place : place + 1], alone.image, 1e-3)


def test_steps_tell_all_that_a_page_needs(smoother: Denoiser) -> None:
    task = build_task("csmri")
    y, physics = task.simulate(phantom(32, 32), task.settings[4])
    model = PnPilot(smoother, policy=Fixed(build_solver("admm"), 4))
    steps = list(model.steps(100 * y, physics))
    assert [step.index for step in steps] == [0, 1, 2, 3]
    assert [step.last for step in steps] == [False, False, False, True]
    assert all(step.image.shape == (2, 2, 32, 32) for step in steps)
    assert all(step.image.abs().max() > 20 for step in steps)  # the user's units, from the first step on
    assert [len(step.trace[1]["parameters"]["mu"]) for step in steps] == [1, 2, 3, 4]
    assert [step.trace[0]["stopped"] for step in steps] == [*["not yet"] * 3, "at the last iteration"]


def test_a_bad_image_is_named_by_its_place(smoother: Denoiser) -> None:
    task = build_task("deblur")
    y, physics = task.simulate(phantom(32, 32, 3), task.settings[0])
    broken = y.clone()
    broken[2, 0, 3, 3] = float("nan")
    with pytest.raises(BadInput, match="1 NaN or infinite values in image 2"):
        PnPilot(smoother)(broken, physics)
    empty = y.clone()
    empty[[0, 2]] = 0
    with pytest.raises(BadInput, match="all zeros in images 0, 2"):
        PnPilot(smoother)(empty, physics)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(exponent=st.floats(-12, 12))
def test_any_scale_gives_the_same_picture(exponent: float) -> None:
    task, smoother = build_task("inpainting"), freeze(Smoother())
    y, physics = task.simulate(phantom(24, 24, 2), task.settings[0])
    scale = 10.0**exponent
    plain = PnPilot(smoother, sigma_n=0.02)(y, physics)
    scaled = PnPilot(smoother, sigma_n=0.02 * scale)(scale * y, physics)
    assert_close(scaled / scale, plain, 1e-3)


@pytest.mark.parametrize("scale", [1e37, 1e-37])
def test_scales_that_single_precision_cannot_square_are_refused(scale: float, smoother: Denoiser) -> None:
    for name in TASKS:
        task = build_task(name)
        y, physics = task.simulate(pictures(task, batch=1), task.settings[0])
        with pytest.raises(BadInput, match="single precision"):
            PnPilot(smoother)(y * scale, physics)


def test_dropped_gradients_are_said(smoother: Denoiser) -> None:
    task = build_task("inpainting")
    y, physics = task.simulate(phantom(32, 32, 1), task.settings[0])
    with pytest.warns(UserWarning, match="passes none on"):
        PnPilot(smoother)(y.requires_grad_(), physics)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PnPilot(smoother)(y.detach(), physics)


@pytest.mark.parametrize("precision", ["double", "half"])
def test_the_precision_of_a_model_may_change(precision: str) -> None:
    task, truth = build_task("csmri"), phantom(32, 32, 1)
    y, physics = task.simulate(truth, task.settings[4])
    model = PnPilot.from_pretrained("csmri", peak=1.0)
    plain = psnr(task.extract(model(y, physics)), truth)
    other = psnr(task.extract(getattr(model, precision)()(y, physics)), truth)
    assert (plain - other).abs().max() < 0.02


@pytest.mark.parametrize("wrong", [0, "no", torch.tensor(False)])
def test_what_is_said_of_the_images_is_taken_as_it_is_meant(wrong: Any, smoother: Denoiser) -> None:
    with pytest.raises(BadInput, match="real must be True or False"):
        PnPilot(smoother, real=wrong)
    y, physics = build_task("deblur").simulate(phantom(32, 32, 1), build_task("deblur").settings[0])
    assert not open_problem(y, physics, Hints(real=np.False_)).units.real.any()  # type: ignore[arg-type]


@pytest.mark.parametrize("peak", [1e-20, 1e10])
@pytest.mark.parametrize("name", TASKS)
def test_a_peak_in_other_units_is_refused(name: str, peak: float, smoother: Denoiser) -> None:
    y, physics = build_task(name).simulate(pictures(build_task(name)), build_task(name).settings[0])
    with pytest.raises(BadInput, match="is it in the units of the data"):
        PnPilot(smoother, peak=peak)(y, physics)


def test_complex_data_of_a_real_operator_are_an_image_with_a_phase_or_refused(smoother: Denoiser) -> None:
    for name in ("inpainting", "deblur"):
        task = build_task(name)
        y, physics = task.simulate(phantom(32, 32, 1), task.settings[0])
        turned = y * torch.polar(torch.ones(1), torch.ones(1))
        if name == "deblur":
            with pytest.raises(BadInput, match="do not fit the BlurFFT"):
                PnPilot(smoother)(turned, physics)
        else:
            assert PnPilot(smoother)(turned, physics).is_complex()


def test_settings_and_images_must_be_as_many() -> None:
    task = build_task("deblur")
    with pytest.raises(BadInput, match="2 settings for 3 images"):
        task.simulate(phantom(32, 32, 3), [task.settings[0]] * 2)
    with pytest.raises(BadInput, match="0 images"):
        task.simulate(torch.zeros(0, 1, 32, 32), task.settings[0])


def test_weights_for_a_denoiser_that_has_its_own_are_refused(smoother: Denoiser) -> None:
    with pytest.raises(BadInput, match="weights are for a denoiser given by its name"):
        PnPilot(smoother, weights="runs/compact")


@pytest.mark.parametrize("wrong", [{"weights": 3}, {"denoiser": None}, {"solver": 2}])
def test_arguments_of_the_wrong_type_are_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="must"):
        PnPilot(**wrong)


def test_from_pretrained_tells_what_it_takes() -> None:
    with pytest.raises(BadInput, match="the name of a task or a folder"):
        PnPilot.from_pretrained(None)  # type: ignore[arg-type]


class Idle(Denoiser):
    """Leaves every image as it is."""

    def residual(self, x: Tensor, sigma: Tensor) -> Tensor:
        return torch.zeros_like(x)


def test_an_image_that_hardly_moved_is_told() -> None:
    """The start fits its data, and without a prior nothing changes."""
    task = build_task("csmri")
    y, physics = task.simulate(phantom(32, 32), task.named("x4 sigma=15"))
    lines = PnPilot(freeze(Idle()), policy="schedule", real=False).reconstruct(y, physics).warnings
    assert len(lines) == 1
    assert lines[0].startswith("images 0, 1 hardly moved from the start: by ")


def test_a_policy_that_stops_at_the_start_gives_way_to_the_schedule(smoother: Denoiser) -> None:
    class Hasty(Fixed):
        """Stops before anything happened."""

        name, stops = "hasty", True

        def __call__(self, problem: Problem, state: Any, t: int) -> Action:
            return self.constant(problem, sigma=0.0)._replace(stop=problem.all_active())

    task = build_task("csmri")
    y, physics = task.simulate(phantom(32, 32), task.named("x4 sigma=15"))
    result = PnPilot(smoother, policy=Hasty(build_solver("admm"), 4)).reconstruct(y, physics)
    assert [record["fallback"] for record in result.trace] == ["failed under 'hasty'"] * 2
    assert_close(result.image, PnPilot(smoother, policy="schedule")(y, physics))


def test_coil_maps_that_do_not_explain_the_data_are_told(smoother: Denoiser) -> None:
    task = build_task("multi-coil")
    y, physics = task.simulate(phantom(32, 32), task.settings[0])
    model = PnPilot(smoother)
    assert model.reconstruct(y, physics).warnings == []
    physics.update(coil_maps=physics.coil_maps.roll(1, dims=1))
    first, line = model.reconstruct(y, physics).warnings
    assert first.startswith("the coil maps do not explain")
    assert line.startswith("images 0, 1 ended ")
    assert "times the noise from the data" in line
    assert "look at operator, mask, coil maps and noise level" in line


@pytest.mark.parametrize("name", ["csmri", "inpainting"])
def test_a_noise_level_in_other_units_is_told(name: str) -> None:
    task = build_task(name)
    y, physics = task.simulate(phantom(32, 32), task.settings[0])
    assert PnPilot().reconstruct(y, physics).warnings == []
    (line,) = PnPilot().reconstruct(255 * y, physics).warnings
    assert re.match(r"the data of images 0, 1 show \d\d\d times the noise that was declared: is it in the units", line)
    assert PnPilot(sigma_n="estimate").reconstruct(255 * y, physics).warnings == []


@pytest.mark.parametrize("hint", [{"sigma_n": 0.1}, {"real": False, "peak": 1.0}])
def test_hints_are_for_the_model(hint: dict[str, Any], smoother: Denoiser) -> None:
    task = build_task("csmri")
    y, physics = task.simulate(phantom(32, 32), task.settings[0])
    with pytest.raises(BadInput, match=rf"^{', '.join(sorted(hint))}: hints are given to the model, as in PnPilot\("):
        PnPilot(smoother)(y, physics, **hint)


def test_texture_that_a_blur_along_one_line_leaves_is_not_taken_for_noise() -> None:
    """It shows five times the noise, which was told correctly."""
    generator = torch.Generator().manual_seed(0)
    texture = (0.5 + 0.15 * torch.randn(1, 1, 96, 96, generator=generator)).clamp(0, 1)
    noise = GaussianNoise(2.55 / 255, rng=generator)
    physics = BlurFFT((1, 96, 96), filter=torch.eye(13)[None, None] / 13, noise_model=noise)
    result = PnPilot(freeze(Smoother()), peak=1.0, real=True).reconstruct(physics(texture), physics)
    assert not any("noise that was declared" in line for line in result.warnings)
