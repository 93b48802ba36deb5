"""The table of policies, without the command line: its rows, what they share, and who sees the truth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from pnpilot.benchmark import policy_runs
from pnpilot.benchmark.cells import Cells
from pnpilot.benchmark.comparison import Comparison
from pnpilot.benchmark.learned import learned_policies
from pnpilot.benchmark.methods import BaselineMethod, Method, ModelMethod, Outcome
from pnpilot.benchmark.policy_methods import policy_methods, policy_rows
from pnpilot.benchmark.policy_runs import Rig
from pnpilot.benchmark.results import Results
from pnpilot.denoisers import Denoiser, build_denoiser
from pnpilot.errors import Incompatible
from pnpilot.policies import POLICIES
from pnpilot.reconstruct import rollout
from pnpilot.tasks import build_task
from pnpilot.tasks.csmri import CSMRI

from .conftest import phantom
from .test_learned import saved_policy

CPU = torch.device("cpu")
SETTING = CSMRI.setting(4, 15)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "two").mkdir()
    for index, picture in enumerate(phantom(128, 128, 2)):
        Image.fromarray((255 * picture[0]).numpy().astype(np.uint8)).save(tmp_path / "two" / f"{index}.png")
    return tmp_path


@pytest.fixture
def _coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search of four points."""
    monkeypatch.setattr("pnpilot.benchmark.oracles.COARSE", 2)
    monkeypatch.setattr("pnpilot.benchmark.oracles.REFINEMENTS", 0)


def plan_of(methods: Sequence[Method], data: Path, size: int = 32) -> Comparison:
    return Comparison(CSMRI(), data, ["two"], [SETTING], methods, CPU, size=(size, size))


def policies(denoiser: Denoiser, *names: str, batch: int = 16) -> list[Method]:
    return policy_methods(CSMRI(), Rig("admm", denoiser, batch), {}, names)


def scores(plan: Comparison, cells: Cells | None = None) -> dict[str, list[tuple[float, float]]]:
    """PSNR and iterations of each image, by method."""
    return {row.method: [(i["psnr"], i["iterations"]) for i in row.images] for row in plan.measured(cells)}


def test_searched_rows_say_what_was_found(smoother: Denoiser, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pnpilot.benchmark.oracles.COARSE", 4)
    methods = ["fixed", "fixed-optimal", "oracle", "oracle*"]
    plan_of(policies(smoother, *methods, batch=64), data, 128).run(Results(data / "p.json", seed=0))

    content = json.loads((data / "p.json").read_text())
    scores = {row["method"]: row["psnr"] for row in content["rows"]}
    assert scores["fixed"] <= scores["fixed-optimal"] <= scores["oracle"] + 1e-3 <= scores["oracle*"] + 2e-3
    found = {method: [i for i in content["images"] if i["method"] == method] for method in methods}
    assert not {"sigma", "mu"} & set(found["fixed"][0])
    assert found["fixed-optimal"][0]["sigma"] == found["fixed-optimal"][1]["sigma"]
    for image in found["oracle"] + found["oracle*"]:
        assert 3 / 255 - 1e-4 <= image["sigma"] <= 70 / 255 + 1e-4
        assert 1e-3 <= image["mu"] <= 1.0


def test_learned_rows_are_those_that_ship_and_those_in_folders(tmp_path: Path) -> None:
    denoiser = build_denoiser("compact")
    solver = Rig("auto", denoiser).solver_for(CSMRI(), SETTING, (1, 32, 32))
    assert list(learned_policies("csmri", solver, denoiser, [])) == ["learned"]
    folders = [saved_policy(tmp_path / name / "run") for name in ("one", "two", "three")]
    found = learned_policies("csmri", solver, denoiser, folders)
    assert list(found) == ["learned", "run", str(folders[2])]
    other = saved_policy(tmp_path / "four", method="model-free")
    assert list(learned_policies("csmri", solver, denoiser, [other])) == ["model-free", "learned"]
    assert learned_policies("csmri", "amp", denoiser, []) == {}
    with pytest.raises(Incompatible, match=r"in .*four is for the solver 'admm', not for 'amp'"):
        learned_policies("csmri", "amp", denoiser, [other])
    with pytest.raises(Incompatible, match=r"in .*four was trained for task 'csmri', not for 'phase'"):
        learned_policies("phase", solver, denoiser, [other])


def test_no_learned_row_with_other_weights_of_its_denoiser(tmp_path: Path) -> None:
    denoiser = build_denoiser("compact")
    denoiser.sha256 = "another"
    assert learned_policies("csmri", "admm", denoiser, []) == {}
    with pytest.raises(Incompatible, match="other weights of the denoiser 'compact'"):
        learned_policies("csmri", "admm", denoiser, [saved_policy(tmp_path / "run", denoiser_sha256="abc")])


def test_rows_are_the_start_then_policies_with_and_without_a_star_and_learned_ones_last(smoother: Denoiser) -> None:
    trained: Any = object()
    rows = list(policy_rows(CSMRI(), Rig("admm", smoother), {"mine": trained}))
    assert (rows[0], rows[-1]) == ("zero-filled", "mine")
    by_hand = [name for name in POLICIES if not POLICIES[name].needs_weights]
    assert rows[1:-1] == [name + star for name in [*by_hand, "fixed-optimal", "oracle"] for star in ("", "*")]
    assert not {"learned", "model-free"} & set(rows)


def test_both_tables_have_the_same_numbers_for_the_same_method(data: Path) -> None:
    """The model's safety net changes nothing far from divergence."""
    task, denoiser = CSMRI(), build_denoiser("compact")
    names = ["zero-filled", "tv", "schedule", "learned"]
    learned = learned_policies(task.name, "admm", denoiser, [])
    by_policy = scores(plan_of(policy_methods(task, Rig("auto", denoiser), learned, names), data))
    others = [BaselineMethod(name, task) for name in names[:2]]
    as_users = scores(plan_of([*others, *(ModelMethod(name, task, CPU) for name in names[2:])], data))
    assert list(by_policy) == list(as_users) == names
    for name in names:
        for one, other in zip(by_policy[name], as_users[name], strict=True):
            assert one == (pytest.approx(other[0], abs=1e-3), other[1]), name


# Who sees the truth.


class Watched(Method):
    """Another method, and the truth that each call was given."""

    def __init__(self, inner: Method) -> None:
        self.inner, self.name, self.needs_truth = inner, inner.name, inner.needs_truth
        self.one_by_one, self.whole_set = inner.one_by_one, inner.whole_set
        self.given: list[Tensor | None] = []

    def __call__(self, y: Tensor, physics: Any, truth: Tensor | None) -> Outcome:
        self.given.append(truth)
        return self.inner(y, physics, truth)


@pytest.mark.usefixtures("_coarse")
def test_only_oracles_and_perfect_stops_see_the_truth(smoother: Denoiser, data: Path) -> None:
    rows = policies(smoother)
    plain = [BaselineMethod("tv", CSMRI()), ModelMethod("schedule", CSMRI(), CPU)]
    methods = [Watched(method) for method in [*rows, *plain]]
    plan = plan_of(methods, data)
    list(plan.measured())
    truth = plan.test_set("two").truth
    for method in methods:
        assert method.given, method.name
        for given in method.given:
            if method.name.endswith("*") or method.name in ("fixed-optimal", "oracle"):
                assert given is not None
                assert torch.equal(given, truth)
            else:
                assert given is None, method.name


# What rows share.


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The policy of each run."""
    found: list[str] = []

    def watched(problem: Any, solver: Any, denoiser: Any, policy: Any) -> Any:
        found.append(policy.name)
        return rollout(problem, solver, denoiser, policy)

    monkeypatch.setattr(policy_runs, "rollout", watched)
    return found


@pytest.mark.parametrize("names", [("fixed", "schedule", "fixed*"), ("fixed*", "schedule", "fixed")])
def test_a_perfect_stop_shares_the_run(names: tuple[str, ...], smoother: Denoiser, data: Path, runs: list[str]) -> None:
    plan = plan_of(policies(smoother, *names, batch=1), data)
    plan.settings = [SETTING, CSMRI.setting(8, 15)]
    rows = [row for row in plan.measured() if row.method.startswith("fixed")]
    assert sorted(runs) == ["fixed"] * 4 + ["schedule"] * 4  # two images, one by one, in two settings
    for one, other in zip(rows[::2], rows[1::2], strict=True):
        last, best = (one, other) if other.method == "fixed*" else (other, one)
        for own, better in zip(last.images, best.images, strict=True):
            assert better["psnr"] >= own["psnr"]
            assert own["iterations"] == 30
    assert rows[0].images[0]["psnr"] != rows[2].images[0]["psnr"]


def test_seconds_of_a_perfect_stop_are_the_share_of_the_run_up_to_it(smoother: Denoiser, data: Path) -> None:
    last, best = plan_of(policies(smoother, "fixed", "fixed*"), data).measured()
    share = sum(image["iterations"] for image in best.images) / sum(image["iterations"] for image in last.images)
    assert best.images[0]["seconds"] == pytest.approx(share * last.images[0]["seconds"], abs=2e-6)


@pytest.mark.usefixtures("_coarse")
def test_searches_on_the_same_data_share_their_points(
    smoother: Denoiser, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pnpilot.benchmark import oracles

    real, visited = oracles.psnr_curve, []

    def watched(problem: Any, *others: Any) -> Tensor:
        visited.append(len(problem))
        return real(problem, *others)

    monkeypatch.setattr(oracles, "psnr_curve", watched)
    list(plan_of(policies(smoother, "fixed-optimal", "fixed-optimal*", "oracle", "oracle*"), data).measured())
    assert sum(visited) == 4 * 2  # points times images, once


def test_the_size_of_a_batch_changes_nothing(smoother: Denoiser, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pnpilot.benchmark.oracles.COARSE", 3)
    names = ("zero-filled", "fixed*", "schedule", "oracle")
    one, two = (scores(plan_of(policies(smoother, *names, batch=batch), data)) for batch in (1, 2))
    for name in names:
        assert one[name] == [(pytest.approx(psnr, abs=2e-3), iterations) for psnr, iterations in two[name]]


# What is kept.


@pytest.mark.usefixtures("_coarse")
def test_what_is_searched_over_a_whole_set_is_kept_with_it(
    smoother: Denoiser, data: Path, tmp_path: Path, runs: list[str]
) -> None:
    cells, plan = Cells(tmp_path / "cells"), plan_of(policies(smoother, "fixed-optimal"), data)
    both = list(plan.measured(cells))
    assert len(runs) == 1
    assert list(plan.measured(cells)) == both
    assert len(runs) == 1
    plan.images = 1  # other images, perhaps other constants
    list(plan.measured(cells))
    assert len(runs) == 2


class Adjoint(Method):
    """The adjoint of the data."""

    name = "adjoint"

    def __init__(self) -> None:
        self.shapes: list[torch.Size] = []

    def __call__(self, y: Tensor, physics: Any, truth: Tensor | None) -> Outcome:
        assert truth is None
        self.shapes.append(y.shape)
        return Outcome(physics.A_adjoint(y), torch.zeros(len(y), dtype=torch.long))


def test_grey_and_colour_results_keep_apart(data: Path, tmp_path: Path) -> None:
    task, method, cells = build_task("deblur"), Adjoint(), Cells(tmp_path / "cells")
    for channels in (1, 3, 1, 3):
        plan = Comparison(task, data, ["two"], task.settings[:1], [method], CPU, size=(32, 32), channels=channels)
        list(plan.measured(cells))
    assert [shape[1] for shape in method.shapes] == [1, 3]
    words = [path.name.split("_")[1] for path in sorted(cells.folder.glob("*.json"))]
    assert words == ["32x32", "32x32x3"]


def test_without_cells_nothing_is_kept_and_rows_are_told_as_they_are_known(
    smoother: Denoiser, data: Path, tmp_path: Path
) -> None:
    heard: list[str] = []
    plan = plan_of(policies(smoother, "fixed", "schedule"), data)
    plan.seeds = 2
    before = set(tmp_path.rglob("*"))
    rows = plan.measured(tick=heard.append)
    assert next(rows).method == "fixed"
    assert [words.split()[-1] for words in heard] == ["fixed", "fixed", "schedule", "schedule", "fixed", "fixed"]
    assert [row.method for row in rows] == ["schedule"]
    assert len(heard) == len(plan)
    assert set(tmp_path.rglob("*")) == before
