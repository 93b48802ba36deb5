"""Any linear operator: what it is opened as, its data step, and where it starts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from deepinv.physics import (
    MRI,
    Blur,
    CompressedSensing,
    Decolorize,
    Downsampling,
    GaussianNoise,
    Inpainting,
    LinearPhysics,
    SinglePixelCamera,
    Tomography,
    Upsampling,
)
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.denoisers import Denoiser
from pnpilot.errors import BadInput
from pnpilot.physics import copied
from pnpilot.problems import Hints, open_problem
from pnpilot.problems._least_squares import conjugate_gradients
from pnpilot.problems.linear import LinearProblem, has_closed_form
from pnpilot.tasks import build_task
from tests.conftest import Smoother, phantom
from tests.contracts import assert_close, example_problem, random_like


class Amplified(LinearPhysics):
    """c·A for another physics A, with its noise amplified as well."""

    def __init__(self, inner: LinearPhysics, factor: float) -> None:
        super().__init__(noise_model=GaussianNoise(factor * inner.noise_model.sigma))
        self.inner, self.factor = inner, factor

    def A(self, x: Tensor, **_: object) -> Tensor:
        return self.factor * self.inner.A(x)

    def A_adjoint(self, y: Tensor, **_: object) -> Tensor:
        return self.factor * self.inner.A_adjoint(y)


def test_the_strength_of_the_operator_does_not_matter() -> None:
    """c·A, c·y and c·σ are the same problem, to every solver that it fits; norms are found to 5e-4."""
    task, truth = build_task("deblur"), phantom(32, 32, 2)
    y, physics = task.simulate(truth, task.settings[0])
    weak, strong = (open_problem(factor * y, Amplified(physics, factor), Hints(peak=1.0)) for factor in (1.0, 10.0))
    v = random_like(weak.x0(), 1)
    assert_close(strong.x0(), weak.x0(), 1e-3)
    assert_close(strong.A(v), weak.A(v), 1e-3)
    assert_close(strong.grad(v), weak.grad(v), 1e-3)
    assert weak.units.sigma_n is not None
    assert strong.units.sigma_n is not None
    assert_close(strong.units.sigma_n, weak.units.sigma_n, 1e-3)


def test_measurements_are_counted_where_something_was_measured() -> None:
    problem, _ = example_problem(build_task("inpainting"), size=32)
    assert isinstance(problem, LinearProblem)
    assert problem.measurements.tolist() == problem.physics.mask.flatten(1).sum(1).tolist()


def test_data_need_not_look_like_an_image() -> None:
    physics = CompressedSensing(m=300, img_size=(1, 16, 16), noise_model=GaussianNoise(0.01))
    problem = open_problem(physics(phantom(16, 16, 2)), physics)
    assert problem.x0().shape == (2, 1, 16, 16)


def test_volumes_are_refused() -> None:
    physics = MRI(mask=torch.ones(1, 2, 4, 8, 8), three_d=True)
    with pytest.raises(BadInput, match="two-dimensional"):
        open_problem(torch.randn(1, 2, 4, 8, 8), physics)


def test_an_operator_that_was_used_and_copied_has_an_adjoint_of_its_own() -> None:
    """deepinv's Tomography keeps a function that is bound to the original, wherever the copy moves."""
    task = build_task("tomography")
    y, physics = task.simulate(phantom(32, 32, 1), task.settings[0])
    assert isinstance(physics, Tomography)
    problem = open_problem(y, physics)
    assert isinstance(problem, LinearProblem)
    kept = physics._auto_grad_adjoint_fn
    assert kept is not None, "it keeps none: this test and the line in `copied` can go"
    moved = problem.to(torch.device("cpu"))
    assert isinstance(moved, LinearProblem)
    for copy in (copied(physics), moved.physics):
        assert copy is not physics
        assert copy._auto_grad_adjoint_fn is None
        assert_close(copy.A_adjoint(y), physics.A_adjoint(y))
        assert copy._auto_grad_adjoint_fn is not kept
    assert physics._auto_grad_adjoint_fn is kept
    assert_close(moved.grad(problem.x0() / 2), problem.grad(problem.x0() / 2))


def test_operators_have_norm_one() -> None:
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(40, 64, generator=generator)

    def forward(x: Tensor) -> Tensor:
        return (x.flatten(1) @ matrix.T)[..., None, None]

    def adjoint(y: Tensor) -> Tensor:
        return (y.flatten(1) @ matrix).reshape(-1, 1, 8, 8)

    physics = LinearPhysics(A=forward, A_adjoint=adjoint, img_size=(1, 8, 8))
    truth = phantom(8, 8)
    problem = open_problem(forward(truth), physics)
    assert isinstance(problem, LinearProblem)
    assert_close(problem.gain, torch.linalg.matrix_norm(matrix, 2).expand(2), 1e-2)


def test_signed_images_are_not_clipped(smoother: Denoiser) -> None:
    truth = phantom(32, 32)
    signed = truth - truth.mean((1, 2, 3), keepdim=True)
    task = build_task("deblur")
    _, physics = task.simulate(truth, task.settings[0])
    y = physics(signed)
    assert not open_problem(y, physics).units.real.any()
    x = PnPilot(smoother)(y, physics)
    assert (x - signed).norm() < 0.3 * signed.norm()


@pytest.mark.parametrize("name", ["deblur", "inpainting", "super-resolution", "tomography"])
def test_noise_does_not_make_an_image_signed(name: str) -> None:
    task, truth = build_task(name), phantom(48, 48)
    _, physics = task.simulate(truth, task.settings[0])
    for sigma in (2, 20, 60):
        physics.noise_model = GaussianNoise(sigma / 255, rng=torch.Generator().manual_seed(sigma))
        assert open_problem(physics(truth), physics).units.real.all()
        assert not open_problem(physics(-truth), physics).units.real.any()


def test_an_adjoint_that_mixes_pixels_is_not_taken_for_a_signed_picture() -> None:
    physics = CompressedSensing(m=120, img_size=(1, 16, 16), rng=torch.Generator().manual_seed(0))
    truth = phantom(16, 16)
    assert open_problem(physics.A(truth), physics).units.real.all()
    assert not open_problem(physics.A(-truth), physics).units.real.any()


def test_errors_without_words_are_told_by_their_kind() -> None:
    def unfinished(_: Tensor) -> Tensor:
        raise NotImplementedError

    with pytest.raises(BadInput, match="NotImplementedError"):
        open_problem(torch.rand(1, 1, 8, 8), LinearPhysics(A=unfinished, A_adjoint=unfinished))


def test_data_that_would_only_broadcast_are_refused() -> None:
    for name in ("inpainting", "deblur", "super-resolution"):
        task = build_task(name)
        y, physics = task.simulate(phantom(32, 32), task.settings[0])
        with pytest.raises(BadInput, match="do not fit"):
            open_problem(y[..., :1], physics)
    task = build_task("inpainting")
    y, physics = task.simulate(phantom(32, 32, 3), task.settings[0])
    with pytest.raises(BadInput, match="do not fit"):
        open_problem(y[:1], physics)
    with pytest.raises(BadInput, match="zero samples in the mask"):
        open_problem(y[:1], Inpainting((1, 32, 32), mask=torch.zeros(1, 1, 32, 32)))
    physics.mask[0, 0, 3, 3] = float("nan")
    with pytest.raises(BadInput, match="NaN or infinite entries"):
        open_problem(y, physics)


@pytest.mark.parametrize(
    "physics",
    [
        CompressedSensing(m=400, img_size=(1, 24, 24)),
        Inpainting((1, 24, 24), mask=(torch.arange(24) % 2 == 0).float().expand(1, 24, 24)),
    ],
    ids=["numbers", "every second column"],
)
def test_where_no_noise_shows_and_none_is_declared_there_is_none_and_that_is_told(physics: Any) -> None:
    problem = open_problem(physics(phantom(24, 24, 1)), physics)
    assert problem.units.sigma_n is not None
    assert problem.units.sigma_n.tolist() == [0]
    (line,) = problem.notes
    assert line.startswith("the physics declares no noise level for image 0, and the data do not show it")
    assert PnPilot(Smoother()).reconstruct(physics(phantom(24, 24, 1)), physics).image.isfinite().all()


def test_noise_that_shows_in_one_image_is_found_whatever_its_neighbours_are() -> None:
    masks = torch.stack([torch.ones(1, 32, 32), (torch.arange(32) % 2 == 0).float().expand(1, 32, 32)])
    physics, one = Inpainting((1, 32, 32), mask=masks), Inpainting((1, 32, 32), mask=masks[:1])
    y = masks * (phantom(32, 32) + 0.05 * random_like(phantom(32, 32), 0))
    both, alone = open_problem(y, physics).units.sigma_n, open_problem(y[:1], one).units.sigma_n
    assert both is not None and alone is not None
    assert both[0] == alone[0] > 0.03
    assert both[1] == 0


def test_an_adjoint_that_is_none_ends_the_descent_and_not_in_nan() -> None:
    b = random_like(torch.zeros(2, 1, 8, 8), 0)
    found = conjugate_gradients(lambda x: -x, b, torch.zeros_like(b))
    assert torch.equal(found, torch.zeros_like(b))


class Flipped(Inpainting):
    """It measures the image upside down; deepinv's closed form, which it inherits, does not know."""

    def A(self, x: Tensor, **kwargs: Any) -> Tensor:
        return super().A(x.flip(-2), **kwargs)

    def A_adjoint(self, y: Tensor, **kwargs: Any) -> Tensor:
        return super().A_adjoint(y, **kwargs).flip(-2)


@pytest.mark.parametrize(
    ("physics", "holds"),
    [
        (Inpainting((1, 32, 32), mask=0.5, rng=torch.Generator().manual_seed(0)), True),
        (Flipped((1, 32, 32), mask=0.5, rng=torch.Generator().manual_seed(0)), False),
        (Downsampling((1, 32, 32), filter="gaussian", factor=2, padding="circular"), True),
        (Upsampling((1, 32, 32), filter="bicubic", factor=2, padding="circular"), False),
        (SinglePixelCamera(m=300, img_size=(1, 32, 32), fast=True), True),
        (SinglePixelCamera(m=300, img_size=(1, 32, 32), fast=False), False),
        (Decolorize(), False),
    ],
    ids=["pixels", "flipped", "super-resolution", "upsampling", "fast", "matrix", "thin"],
)
def test_a_closed_form_is_used_where_it_holds_and_the_data_step_is_right_either_way(
    physics: LinearPhysics, holds: bool
) -> None:
    side = 16 if isinstance(physics, Upsampling) else 32
    truth = phantom(side, side).expand(-1, 3 if isinstance(physics, Decolorize) else 1, -1, -1)
    problem = open_problem(physics.A(truth), physics, Hints(sigma_n=0.01, peak=1.0))
    assert isinstance(problem, LinearProblem)
    assert has_closed_form(physics)
    assert problem.closed_form == holds
    v, mu = random_like(problem.x0(), 1), torch.tensor([0.3, 0.9])
    z = v
    for _ in range(10):
        z = problem.prox(v, mu, start=z)
    gradient = problem.grad(z) + mu[:, None, None, None] * (z - v)
    assert_close(gradient + v, v, 1e-3)


@pytest.mark.parametrize("kind", ["square", "band"])
def test_wide_gaps_start_with_what_is_around_them_and_not_black(kind: str) -> None:
    truth, mask = phantom(96, 96, 1), torch.ones(96, 96)
    mask[28:68, (28 if kind == "square" else 0) : (68 if kind == "square" else 96)] = 0
    physics = Inpainting((1, 96, 96), mask=mask[None], noise_model=GaussianNoise(0.01))
    y = mask * truth
    start = open_problem(y, physics, Hints(peak=1.0)).x0()
    edge = truth[..., 27, 27:69] if kind == "square" else truth[..., 27, :]
    gap = start[..., 28:68, 30:66]
    assert gap.min() > 0.8 * min(edge.min(), truth[..., 68, :].min())
    assert gap.max() < 1.2 * truth.max()


class Own(LinearPhysics):
    """A blur with an adjoint of its own."""

    def __init__(self, adjoint: str) -> None:
        super().__init__(noise_model=GaussianNoise(0.01))
        kernel = torch.zeros(1, 1, 5, 5)
        kernel[..., :2, :2] = 0.25
        self.blur, self.adjoint = Blur(kernel, padding="circular"), adjoint

    def A(self, x: Tensor, **_: object) -> Tensor:
        seen = self.blur.A(x)
        return seen.clamp(0, 1) if self.adjoint == "clamped" else seen

    def A_adjoint(self, y: Tensor, **_: object) -> Tensor:
        if self.adjoint == "not turned":
            return self.blur.A(y)
        return self.blur.A_adjoint(y) * (0.5 if self.adjoint == "half" else 1)


@pytest.mark.parametrize("adjoint", ["right", "half", "not turned", "clamped"])
def test_an_adjoint_that_is_none_is_told(adjoint: str) -> None:
    physics = Own(adjoint)
    notes = open_problem(physics(phantom(32, 32)), physics).notes
    assert [note.startswith("A_adjoint of the Own is not the adjoint of its A") for note in notes] == [True] * (
        adjoint != "right"
    )


def test_what_the_operator_does_not_see_counts_for_nothing() -> None:
    """A detector wider than the object records noise beside it."""
    physics = Tomography(20, 32, fan_beam=True, normalize=True, noise_model=GaussianNoise(0.02))
    truth = phantom(32, 32)
    y = physics(truth)
    problem = open_problem(y, physics, Hints(peak=1.0))
    assert (problem.measurements < 0.2 * y[0].numel()).all()
    assert (problem.fidelity(truth) - 1).abs().max() < 0.1
    assert problem.notes == []


def test_data_where_nothing_was_measured_are_told() -> None:
    mask = (torch.rand(1, 32, 32, generator=torch.Generator().manual_seed(0)) < 0.5).float()
    physics = Inpainting((1, 32, 32), mask=mask, noise_model=GaussianNoise(0.02))
    truth = phantom(32, 32)
    y = physics(truth)
    y[1] = truth[1]
    problem = open_problem(y, physics, Hints(peak=1.0))
    (note,) = problem.notes
    assert note.startswith("the data of image 1 are not zero where the Inpainting measures nothing, and are ignored")
    alone = open_problem(y[:1], physics, Hints(peak=1.0))
    assert alone.notes == []
    assert_close(problem.y[1], truth[1] * mask)
