"""The public surface: one call, any physics, deepinv's own tools."""

from __future__ import annotations

import copy
import json
import warnings
from typing import Any

import deepinv
import pytest
import torch
from deepinv.models import MedianFilter
from deepinv.physics import MRI, GaussianNoise, Inpainting, MultiCoilMRI
from torch import Tensor
from torch.utils.data import DataLoader

from pnpilot import PnPilot
from pnpilot.denoisers import Denoiser
from pnpilot.denoisers.base import freeze
from pnpilot.denoisers.compact import Compact
from pnpilot.denoisers.deepinv import DeepinvDenoiser
from pnpilot.errors import BadInput, BadWeights, Incompatible, UnknownName
from pnpilot.metrics import psnr
from pnpilot.policies.fixed import Fixed
from pnpilot.problems import Problem
from pnpilot.reconstruct import SHRINKS_BY
from pnpilot.solvers import SOLVERS, build_solver
from pnpilot.tasks import TASKS, build_task
from pnpilot.tasks.csmri import CSMRI
from pnpilot.types import Action
from tests.conftest import phantom
from tests.contracts import assert_close, pictures


@pytest.mark.parametrize("name", TASKS)
def test_one_call_for_every_task(name: str, smoother: Denoiser) -> None:
    task = build_task(name)
    truth = pictures(task)
    y, physics = task.simulate(truth, task.settings[0])
    x = PnPilot(smoother)(y, physics)
    assert x.shape == task.embed(truth).shape
    assert torch.isfinite(x).all()
    assert not x.requires_grad


@pytest.mark.filterwarnings("ignore:non_blocking_transfers")
def test_works_in_deepinvs_own_test_with_its_metrics(smoother: Denoiser) -> None:
    truth = CSMRI().embed(phantom(32, 32, 4))
    mask = CSMRI().physics(CSMRI.setting(4, 5), (1, 32, 32), torch.Generator().manual_seed(0)).mask
    physics = MRI(mask=mask, noise_model=GaussianNoise(25 / 255, rng=torch.Generator().manual_seed(1)))
    pairs: Any = [{"x": x, "y": y} for x, y in zip(truth, physics(truth), strict=True)]
    loader: DataLoader[Any] = DataLoader(pairs, batch_size=2)
    results = deepinv.test(
        PnPilot(smoother, policy=Fixed(build_solver("admm"), 5, sigma=0.2, mu=0.3)),
        loader,
        physics,
        metrics=[deepinv.metric.PSNR(complex_abs=True), deepinv.metric.SSIM(complex_abs=True)],
        verbose=False,
        show_progress_bar=False,
    )
    assert results["PSNR"] > results["PSNR no learning"] + 0.5
    assert 0 < results["SSIM"] <= 1


@pytest.mark.parametrize("name", TASKS)
def test_scale_equivariance(name: str, smoother: Denoiser) -> None:
    """model(c·y) = c·model(y) when the noise level scales along."""
    task = build_task(name)
    y, physics = task.simulate(pictures(task), task.settings[0])
    if hasattr(physics.noise_model, "gain") or name == "single-photon":
        pytest.skip("photons are counted in units of their own")
    small = PnPilot(smoother, sigma_n=0.02)(y, physics)
    large = PnPilot(smoother, sigma_n=0.16)(8 * y, physics)
    assert_close(large, 8 * small, 1e-4)


@pytest.mark.parametrize("name", ["csmri", "multi-coil"])
def test_phase_equivariance(name: str, smoother: Denoiser) -> None:
    """model(e^{iθ}·y) = e^{iθ}·model(y) for complex images, whose real part may have any sign."""
    task = build_task(name)
    y, physics = task.simulate(pictures(task), task.settings[0])
    data, turn = torch.complex(y[:, 0], y[:, 1]), torch.polar(torch.ones(()), torch.tensor(2.0))
    data = data if name == "multi-coil" else data[:, None]
    model = PnPilot(smoother, real=False)
    plain, turned = (torch.complex(x[:, 0], x[:, 1]) for x in (model(data, physics), model(turn * data, physics)))
    assert_close(turned, turn * plain, 1e-4)
    assert plain.imag.abs().max() > 0


@pytest.mark.parametrize("name", ["csmri", "multi-coil"])
def test_complex_kspace_gives_the_same_image_as_deepinvs_layout(name: str, smoother: Denoiser) -> None:
    task = build_task(name)
    y, physics = task.simulate(pictures(task), task.settings[0])
    data = torch.complex(y[:, 0], y[:, 1])
    model = PnPilot(smoother)
    assert torch.equal(model(data if name == "multi-coil" else data[:, None], physics), model(y, physics))


def test_a_batch_of_different_problems_equals_one_by_one(smoother: Denoiser) -> None:
    truth, task = phantom(32, 32, 3), CSMRI()
    sigmas = torch.tensor([5.0, 10.0, 15.0]) / 255
    singles = [
        task.simulate(truth[i : i + 1], task.setting(a, 15, m), seed=i)
        for i, (a, m) in enumerate([(2, "radial"), (4, "random"), (8, "cartesian")])
    ]
    y = torch.cat([data for data, _ in singles])
    physics = MRI(mask=torch.cat([one.mask for _, one in singles]), noise_model=GaussianNoise(sigmas))
    together = PnPilot(smoother)(y, physics)
    for index, (data, one) in enumerate(singles):
        assert_close(PnPilot(smoother, sigma_n=sigmas[index].item())(data, one), together[index : index + 1], 1e-4)


def test_reconstruct_tells_what_was_done(smoother: Denoiser) -> None:
    y, physics = CSMRI().simulate(phantom(32, 32), CSMRI.setting(4, 15))
    result = PnPilot(smoother).reconstruct(y, physics)
    assert result.warnings == []
    assert len(result.trace) == 2
    record = json.loads(json.dumps(result.trace))[0]
    assert record["solver"] == "admm"
    assert record["iterations"] == 30
    assert len(record["parameters"]["sigma"]) == len(record["parameters"]["mu"]) == 30
    assert record["stopped"] == "at the last iteration"


def test_the_trace_says_who_stopped(smoother: Denoiser) -> None:
    class StopFirst(Fixed):
        stops = True

        def __call__(self, problem: Problem, state: object, t: int) -> Action:
            stop = ~problem.all_active()
            stop[0] = t == 1  # from then on the other image is alone in the batch
            return super().__call__(problem, state, t)._replace(stop=stop)

    y, physics = CSMRI().simulate(phantom(32, 32), CSMRI.setting(4, 15))
    early, late = PnPilot(smoother, policy=StopFirst(build_solver("admm"), 5)).reconstruct(y, physics).trace
    assert (early["stopped"], early["iterations"]) == ("by the policy", 2)
    assert (late["stopped"], late["iterations"]) == ("at the last iteration", 5)


class StopAfter(Fixed):
    """Stops every image after a number of iterations of its own."""

    stops = True
    numbers = torch.tensor([2, 1, 4, 2, 3])

    def __call__(self, problem: Problem, state: object, t: int) -> Action:
        return super().__call__(problem, state, t)._replace(stop=self.numbers == t + 1)

    def select(self, index: Tensor) -> StopAfter:
        chosen = copy.copy(self)
        chosen.numbers = self.numbers[index]
        return chosen


@pytest.mark.parametrize("steps", [1, 2, 8])
def test_a_stopped_image_stays_as_it_was(steps: int, smoother: Denoiser, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the batch shrinks: image by image, or in steps as on a GPU."""
    monkeypatch.setitem(SHRINKS_BY, "cpu", steps)
    y, physics = CSMRI().simulate(phantom(32, 32, 5), CSMRI.setting(4, 15))
    solver = build_solver("admm")
    result = PnPilot(smoother, policy=StopAfter(solver, 6)).reconstruct(y, physics)
    assert [record["iterations"] for record in result.trace] == StopAfter.numbers.tolist()
    for image, number in enumerate(StopAfter.numbers.tolist()):
        alone = PnPilot(smoother, policy=Fixed(solver, number))(y, physics)
        assert_close(result.image[image], alone[image])


def test_a_bare_deepinv_denoiser_is_adapted() -> None:
    y, physics = CSMRI().simulate(phantom(32, 32), CSMRI.setting(4, 5))
    median = MedianFilter()  # as strong for any noise level: the image ends far from its data
    with pytest.warns(UserWarning, match=r"images 0, 1 ended [\d.]+ times the noise from the data"):
        bare = PnPilot(median)(y, physics)
    with pytest.warns(UserWarning, match=r"images 0, 1 ended [\d.]+ times the noise from the data"):
        assert_close(bare, PnPilot(DeepinvDenoiser(median))(y, physics))


def test_steps_end_in_the_same_image(smoother: Denoiser) -> None:
    y, physics = CSMRI().simulate(phantom(32, 32), CSMRI.setting(4, 15))
    model = PnPilot(smoother)
    steps = list(model.steps(y, physics))
    assert len(steps) == 30
    assert torch.equal(steps[-1].image, model(y, physics))
    assert torch.is_grad_enabled()


class Breaking(Denoiser):
    """Turns the second image of a batch into NaN, or into something huge."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def forward(self, x: Tensor, sigma: Tensor | float) -> Tensor:
        return torch.cat([x[:1], torch.full_like(x[1:], self.value)])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e6])
def test_an_image_that_breaks_comes_back_as_its_start_with_a_warning(value: float) -> None:
    y, physics = CSMRI().simulate(phantom(32, 32), CSMRI.setting(2, 5))
    model = PnPilot(Breaking(value), policy="schedule")
    with pytest.warns(UserWarning, match="image 1 diverged"):
        x = model(y, physics)
    assert torch.isfinite(x).all()
    assert_close(x[1, 0], physics.A_adjoint(y)[1, 0].clamp(0))
    *_, last = model.steps(y, physics)
    assert torch.equal(last.image, x)
    assert last.warnings == ("image 1 diverged: its start is returned instead",)
    result = model.reconstruct(y, physics)
    assert result.warnings == ["image 1 diverged: its start is returned instead"]
    assert result.trace[1]["fallback"] == "the start is returned"
    assert [record["iterations"] for record in result.trace] == [30, 0]


@pytest.mark.parametrize("name", SOLVERS)
def test_real_images_come_back_real_and_within_bounds(name: str, smoother: Denoiser) -> None:
    y, physics = CSMRI().simulate(phantom(32, 32), CSMRI.setting(4, 15))
    x = PnPilot(smoother, solver=name, policy="fixed", peak=1.0)(y, physics)
    assert (x[:, 1] == 0).all()
    assert x.min() >= 0
    assert x.max() <= 1


def test_multi_coil_data_are_complex_images() -> None:
    ramp = torch.linspace(-1, 1, 24)
    bumps = [torch.exp(-((ramp[:, None] - r) ** 2) - (ramp[None, :] - c) ** 2) for r in (-1, 1) for c in (-1, 1)]
    maps = torch.stack(bumps)[None] / torch.stack(bumps).square().sum(0).sqrt() * torch.exp(torch.tensor(0.7j))
    mask = CSMRI().physics(CSMRI.setting(3, 5), (1, 24, 24), torch.Generator().manual_seed(0)).mask
    physics = MultiCoilMRI(mask=mask, coil_maps=maps, noise_model=GaussianNoise(0.01))
    truth = torch.cat([phantom(24, 24, 1), 0.5 * phantom(24, 24, 1)], 1)
    y = physics(truth)
    x = PnPilot()(y, physics)
    assert x.shape == truth.shape
    assert (x - truth).norm() < 0.4 * (physics.A_adjoint(y) - truth).norm()


def test_colour_images_are_denoised_channel_by_channel(smoother: Denoiser) -> None:
    truth = phantom(32, 32, 2).repeat(1, 3, 1, 1)
    mask = (torch.rand(1, 1, 32, 32, generator=torch.Generator().manual_seed(0)) < 0.7).float()
    physics = Inpainting((3, 32, 32), mask=mask.expand(1, 3, -1, -1), noise_model=GaussianNoise(0.01))
    x = PnPilot(smoother)(physics(truth), physics)
    assert x.shape == truth.shape
    assert (psnr(x, truth) > 20).all()


def test_double_precision_data_are_taken() -> None:
    """The denoiser works in single precision; so does what comes back."""
    network = freeze(Compact((8, 8), 1))
    y, physics = CSMRI().simulate(phantom(32, 32), CSMRI.setting(4, 15))
    x = PnPilot(network)(y.double(), physics)
    assert x.dtype == torch.float32
    assert_close(x, PnPilot(network)(y, physics))
    mask = torch.ones(1, 1, 32, 32, dtype=torch.float64)
    inpainting = Inpainting((1, 32, 32), mask=mask, noise_model=GaussianNoise(0.01))
    with pytest.warns(UserWarning, match="times the noise from the data"):  # the network was not trained
        assert torch.isfinite(PnPilot(network)(phantom(32, 32), inpainting)).all()


def test_what_does_not_fit_is_refused_when_built_or_called(smoother: Denoiser) -> None:
    y, physics = CSMRI().simulate(phantom(32, 32), CSMRI.setting(4, 15))
    with pytest.raises(UnknownName, match="unknown solver"):
        PnPilot(smoother, solver="newton")
    with pytest.raises(UnknownName, match="unknown policy"):
        PnPilot(smoother, policy="magic")
    with pytest.raises(UnknownName, match="unknown denoiser"):
        PnPilot("bm4d")
    with pytest.raises(Incompatible, match="made for the solver 'hqs', not for 'admm'"):
        PnPilot(smoother, solver="admm", policy=Fixed(build_solver("hqs")))
    with pytest.raises(BadInput, match="must be a name or a module, got a int"):
        PnPilot(3)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="Linear denoises neither"):
        PnPilot(torch.nn.Linear(2, 2))
    with pytest.raises(BadInput, match="device 'abacus' cannot be used"):
        PnPilot(smoother, device="abacus")
    with pytest.raises(BadInput, match="solver must be a name"):
        PnPilot(smoother, solver=build_solver("admm"))  # type: ignore[arg-type]
    with pytest.raises(BadWeights, match="no weights ship for the denoiser 'memnet'"):
        PnPilot("memnet")
    with pytest.raises(BadInput, match=r"\(batch, 2, height, width\)"):
        PnPilot(smoother)(y[:, :1], physics)


def test_a_policy_object_brings_its_solver(smoother: Denoiser) -> None:
    y, physics = CSMRI().simulate(phantom(32, 32), CSMRI.setting(4, 15))
    model = PnPilot(smoother, policy=Fixed(build_solver("pg"), 5))
    assert model.reconstruct(y, physics).trace[0]["solver"] == "pg"


def test_the_shipped_denoiser_reconstructs_a_real_scan() -> None:
    from pnpilot.io.scans import example_brain

    truth = example_brain()
    y, physics = CSMRI().simulate(truth, CSMRI.setting(4, 15))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = PnPilot()(y, physics)
    start = physics.A_adjoint(y)
    assert psnr(x[:, :1], truth) > psnr(start[:, :1], truth) + 3


def test_an_image_with_phase_is_reconstructed_with_its_phase() -> None:
    from pnpilot.io.scans import example_brain

    magnitude = example_brain()
    ramp = torch.linspace(-3, 3, magnitude.shape[-1])
    truth = torch.cat([magnitude * torch.cos(ramp), magnitude * torch.sin(ramp)], 1)
    _, physics = CSMRI().simulate(magnitude, CSMRI.setting(4, 10))
    y = physics(truth)
    error, start = ((image - truth).norm() for image in (PnPilot()(y, physics), physics.A_adjoint(y)))
    assert error < 0.7 * start


def test_amp_works_with_the_shipped_denoiser() -> None:
    from pnpilot.io.scans import example_brain

    truth = example_brain()
    y, physics = CSMRI().simulate(truth, CSMRI.setting(4, 15))
    x = PnPilot(policy=Fixed(build_solver("amp"), 10))(y, physics)
    assert psnr(x[:, :1], truth) > psnr(physics.A_adjoint(y)[:, :1], truth) + 1.5
