"""Single photons: the data step and its gradient, what is refused, and that it makes pictures."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.errors import BadInput
from pnpilot.metrics import psnr
from pnpilot.physics import SinglePhoton
from pnpilot.problems import Hints, Units, open_problem
from pnpilot.problems.single_photon import SinglePhotonProblem
from pnpilot.tasks.single_photon import SinglePhotonTask
from tests.conftest import phantom
from tests.contracts import assert_close


def scalars(ones: list[float], peak: float = 1.0, jots: float = 16.0) -> SinglePhotonProblem:
    """One pixel per problem, in double precision."""
    count = len(ones)
    y = torch.tensor(ones, dtype=torch.float64).reshape(count, 1, 1, 1) / jots
    same = torch.ones(count, dtype=torch.float64)
    units = Units(peak * same, False, None, torch.ones(count, dtype=torch.bool))
    return SinglePhotonProblem(y, units, jots * same, 0.03 * same, y)


CASES = [(k, v, mu) for k in (0.0, 1.0, 7.0, 16.0) for v in (-1.0, 0.02, 0.5, 3.0) for mu in (1e-4, 0.05, 1.0)]


@pytest.mark.parametrize("peak", [1.0, 2.5])
def test_the_data_step_is_the_minimum(peak: float) -> None:
    """Against a search along the line, for all zeros, all ones and in between, near the data and far from them."""
    from scipy.optimize import minimize_scalar

    ones, v, mu = zip(*CASES, strict=True)
    problem = scalars(list(ones), peak)
    target, weight = torch.tensor(v).double().reshape(-1, 1, 1, 1), torch.tensor(mu).double()
    found = problem.prox(target, weight)

    def objective(index: int, z: float) -> float:
        image = torch.full_like(target, z)
        return float(problem.D(image)[index] + weight[index] / 2 * (z - target[index, 0, 0, 0]) ** 2)

    for index, z in enumerate(found.flatten().tolist()):
        best = minimize_scalar(lambda at, i=index: objective(i, at), bounds=(0, 12), options={"xatol": 1e-9})
        assert objective(index, z) <= best.fun + 1e-9
        assert abs(z - best.x) < 1e-3
    slope = problem.grad(found) + weight.reshape(-1, 1, 1, 1) * (found - target)
    assert (slope[found > 0].abs() < 1e-9).all()
    assert (slope[found == 0] > 0).all()


def test_gradients_of_the_data_step_are_exact() -> None:
    """By finite differences, in what it starts from and in the penalty, with and without the bound at zero."""
    problem = scalars([0.0, 1.0, 7.0, 16.0, 0.0])
    v = torch.tensor([0.9, 0.1, 0.5, 1.2, -0.5]).double().reshape(-1, 1, 1, 1).requires_grad_()
    mu = torch.tensor([0.9, 0.01, 0.1, 1.0, 0.5]).double().requires_grad_()
    assert problem.prox(v, mu).flatten()[0] > 0
    assert problem.prox(v, mu).flatten()[-1] == 0
    assert torch.autograd.gradcheck(problem.prox, (v, mu))


def test_noise_counts_jots() -> None:
    """Whole numbers of ones, as many as expected, and as far from that as chance goes."""
    physics = SinglePhoton(4, torch.Generator().manual_seed(0))
    light = torch.full((1, 1, 200, 200), 0.7)
    ones, chance = 16 * physics(light), 1 - torch.exp(torch.tensor(-0.7))
    assert torch.equal(ones, ones.round())
    assert abs(ones.mean() - 16 * chance) < 0.05
    assert abs(ones.var() / (16 * chance * (1 - chance)) - 1) < 0.05


def test_images_have_their_own_number_of_jots() -> None:
    task, truth = SinglePhotonTask(), phantom(32, 32, 3)
    settings = [task.setting(K) for K in (3, 5, 9)]
    y, physics = task.simulate(truth, settings)
    problem = open_problem(y, physics)
    assert (problem.fidelity(truth) - 1).abs().max() < 0.15
    for index in range(3):
        alone = open_problem(y[index : index + 1], SinglePhoton(settings[index]["K"]))
        part = problem.select(torch.tensor([index]))
        assert_close(part.prox(part.x0() / 2, torch.tensor([0.1])), alone.prox(alone.x0() / 2, torch.tensor([0.1])))


def test_scenes_brighter_than_one_photon_per_jot_have_their_own_peak() -> None:
    truth = phantom(48, 48, 2)
    physics = SinglePhoton(8, torch.Generator().manual_seed(0))
    dim, bright = (open_problem(physics(factor * truth), physics) for factor in (1, 2.5))
    assert ((dim.units.peak >= 1) & (dim.units.peak < 1.1)).all()
    assert (bright.units.peak > 1.8).all()
    assert not bright.units.peak_known
    assert open_problem(physics(truth), physics, Hints(peak=0.9)).units.peak_known


def test_what_is_no_share_of_ones_is_refused() -> None:
    physics = SinglePhoton(4)
    y = physics(phantom(16, 16))
    for wrong in (16 * y, -y, y + 0.02):
        with pytest.raises(BadInput, match="shares of ones must be from 0 to 1, and whole numbers over 16 jots"):
            open_problem(wrong, physics)
    with pytest.raises(BadInput, match="K×K jots for a whole number K"):
        SinglePhoton(0)


def test_pictures_are_better_than_the_start() -> None:
    task, truth = SinglePhotonTask(), phantom(64, 64, 1)
    y, physics = task.simulate(truth, task.setting(4))
    start: Tensor = open_problem(y, physics).x0()
    result = PnPilot().reconstruct(y, physics)
    assert result.warnings == []
    assert psnr(result.image.clamp(0, 1), truth) > psnr(start.clamp(0, 1), truth) + 2


@pytest.mark.parametrize("side", [1, 2])
def test_results_of_few_jots_are_better_than_the_start(side: int) -> None:
    truth = 0.4 + 0.6 * phantom(64, 64, 1)
    physics = SinglePhoton(side, torch.Generator().manual_seed(0))
    y = physics(truth)
    problem = open_problem(y, physics)
    result = PnPilot().reconstruct(y, physics)
    assert psnr(result.image, truth) > psnr(problem.export(problem.x0()), truth) + 5
    assert abs(result.image.mean() / truth.mean() - 1) < 0.08


def test_few_photons_are_told_of() -> None:
    truth = torch.cat([phantom(32, 32, 1), 0.05 * phantom(32, 32, 1)])
    told = [open_problem(physics(truth), physics).notes for physics in map(SinglePhoton, (2, 4, 20))]
    assert [len(notes) for notes in told] == [1, 1, 0]
    assert told[0][0].startswith("few photons are known of images 0, 1, ")
    assert told[1][0].startswith("few photons are known of image 1, ")
