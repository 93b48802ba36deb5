"""Policies that see the truth: searches find known optima, in the range that the solver states."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from pnpilot.benchmark.oracles import ORACLES, BestStop, FixedOptimal, Oracle, psnr_curve, searched
from pnpilot.denoisers import Denoiser
from pnpilot.errors import Incompatible
from pnpilot.metrics import psnr
from pnpilot.policies import POLICIES, Policy
from pnpilot.policies.fixed import Fixed
from pnpilot.reconstruct import rollout
from pnpilot.solvers import SOLVERS, build_solver
from pnpilot.solvers.admm import ADMM
from pnpilot.tasks.csmri import CSMRI
from pnpilot.types import Range
from tests.contracts import assert_close, example_problem


def test_oracles_are_no_policies_for_users() -> None:
    assert list(ORACLES) == ["fixed-optimal", "oracle"]
    assert not set(ORACLES) & set(POLICIES)


@pytest.mark.parametrize("solver_name", SOLVERS)
@pytest.mark.parametrize("name", ORACLES)
def test_oracles_set_every_parameter_once_they_have_seen_the_truth(
    name: str, solver_name: str, smoother: Denoiser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pnpilot.benchmark.oracles.COARSE", 2)
    monkeypatch.setattr("pnpilot.benchmark.oracles.REFINEMENTS", 0)
    solver = build_solver(solver_name)
    problem, truth = example_problem(CSMRI(), batch=2)
    policy = ORACLES[name](solver, iterations=2)
    with pytest.raises(Incompatible, match="fitted to true images"):
        policy(problem, None, 0)
    policy.fit(problem, smoother, truth)
    action = policy(problem, solver.init(problem), 1)
    for parameter, limits in solver.params.items():
        value = action.params[parameter]
        assert value.shape == (2, 1), parameter
        assert (value >= limits.low).all(), parameter
        assert (value <= 1.001 * limits.high).all(), parameter


def test_a_search_reads_its_range_from_the_solver() -> None:
    names, low, high = searched(build_solver("admm"))
    assert names == ["sigma", "mu"]
    assert_close(low.exp(), torch.tensor([3 / 255, 1e-3]))
    assert_close(high.exp(), torch.tensor([70 / 255, 1.0]))

    class Own(ADMM):
        params = {"own": Range(0.0, 5.0, 1.0), "other": Range(2.0, 5.0, 3.0)}

    _, low, high = searched(Own())
    assert_close(low.exp(), torch.tensor([0.05, 2.0]))
    assert_close(high.exp(), torch.tensor([5.0, 5.0]))


class Peaked(Denoiser):
    """A toy whose best strength is known: the image is exact when σ equals the target, and off by |log σ/target|."""

    def __init__(self, truth: Tensor, targets: Tensor) -> None:
        super().__init__()
        self.truth, self.targets = truth, targets

    def forward(self, x: Tensor, sigma: Tensor | float) -> Tensor:
        levels = torch.as_tensor(sigma)
        # Which image each row belongs to is recognised by its brightest pixel.
        rows = (x.amax((1, 2, 3))[:, None] - self.truth.amax((1, 2, 3))[None]).abs().argmin(1)
        off = (levels.log() - self.targets[rows].log()).abs()
        return self.truth[rows] * (1 - 0.2 * off[:, None, None, None])


def test_search_finds_the_known_optimum() -> None:
    problem, _ = example_problem(CSMRI(), batch=2)
    problem.y = problem.y * torch.tensor([0.3, 0.9])[:, None, None, None]
    truth = problem.x0().real.clamp(0, 1)
    targets = torch.tensor([9 / 255, 33 / 255])
    denoiser, solver = Peaked(truth, targets), build_solver("hqs")
    oracle = Oracle(solver, iterations=1)
    oracle.fit(problem, denoiser, truth)
    assert ((oracle.values["sigma"] / targets).log().abs() < 0.06).all()

    shared = FixedOptimal(solver, iterations=1)
    shared.fit(problem, denoiser, truth)
    assert shared.values["sigma"].shape == (1,)  # so that it can be used on other images
    assert targets[0] * 0.95 < shared.values["sigma"][0] < targets[1] * 1.05


def test_oracle_beats_fixed_optimal_beats_fixed(smoother: Denoiser) -> None:
    problem, truth = example_problem(CSMRI(), batch=3)
    solver = build_solver("admm")

    def score(policy: Policy) -> Tensor:
        policy.fit(problem, smoother, truth)
        *_, last = rollout(problem, solver, smoother, policy)
        return psnr(CSMRI().extract(last.image), truth)

    fixed, shared, own = (score(kind(solver, iterations=6)) for kind in (Fixed, FixedOptimal, Oracle))
    assert shared.mean() >= fixed.mean()
    assert (own >= shared - 1e-4).all()
    starred = score(BestStop(Oracle(solver, iterations=6)))
    assert (starred >= own - 1e-4).all()


def test_best_stop_stops_each_image_at_its_best(smoother: Denoiser) -> None:
    problem, truth = example_problem(CSMRI(), batch=3)
    solver = build_solver("admm")
    inner = Fixed(solver, 12, sigma=40 / 255, mu=0.3)
    policy = BestStop(inner)
    with pytest.raises(Incompatible, match="true images first"):
        policy(problem, None, 0)
    policy.fit(problem, smoother, truth)
    curve = psnr_curve(problem, solver, smoother, inner, truth)
    *_, last = rollout(problem, solver, smoother, policy)
    assert_close(psnr(CSMRI().extract(last.image), truth), curve.amax(0), 1e-5)
    assert last.iterations.tolist() == (curve.argmax(0) + 1).tolist()


def test_a_search_takes_real_and_complex_images_together(smoother: Denoiser) -> None:
    problem, truth = example_problem(CSMRI(), batch=3)
    problem.units = replace(problem.units, real=torch.tensor([True, False, True]))
    solver = build_solver("admm")
    oracle = Oracle(solver, iterations=2)
    oracle.fit(problem, smoother, truth)
    one = problem.select(torch.tensor([1]))
    alone = Oracle(solver, iterations=2)
    alone.fit(one, smoother, truth[1:2])
    *_, last = rollout(problem, solver, smoother, oracle)
    *_, single = rollout(one, solver, smoother, alone)
    assert psnr(CSMRI().extract(last.image), truth)[1] == pytest.approx(
        psnr(CSMRI().extract(single.image), truth[1:2])[0].item(), abs=0.05
    )
