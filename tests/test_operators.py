"""The operators of the benchmark: what each must keep to, the protocol of DPIR, and the table of them all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from pnpilot.benchmark.operator_methods import TV
from pnpilot.benchmark.operators import OPERATORS, Operator, build_operator, conditions, in_order
from pnpilot.benchmark.operators._levin import FILE, SeededNoise
from pnpilot.benchmark.operators.base import GROUPS
from pnpilot.errors import BadInput
from pnpilot.problems import Hints, open_problem
from pnpilot.tasks import TASKS
from pnpilot.tasks.deblur import Deblur
from tests.cli import Said
from tests.conftest import block_pictures, phantom
from tests.contracts import assert_close

NAMES = list(OPERATORS)
SIDES = (7, 5)
"""Of stand-ins for Levin's kernels, which do not ship."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like that of a user, with pictures of blocks as test sets and random kernels."""
    folder = tmp_path_factory.mktemp("data")
    for name in {OPERATORS[name].dataset for name in NAMES}:
        block_pictures(folder / name, 8, 8)
    for name, number in (("01", 0), ("02", 1), ("05", 2)):
        (folder / "set12" / f"{number}.png").rename(folder / "set12" / f"{name}.png")
    rng = np.random.default_rng(0)
    (folder / FILE.parent).mkdir()
    kernels = {f"k{number}": rng.uniform(size=SIDES) for number in range(1, 9)}
    np.savez(folder / FILE, **{name: kernel / kernel.sum() for name, kernel in kernels.items()})
    return folder


def pictures(operator: Operator) -> torch.Tensor:
    """Two small images."""
    side = 30 if operator.task == "super-resolution" and operator.values["factor"] == 3 else 32
    return phantom(side, side).repeat(1, operator.channels, 1, 1)


@pytest.mark.parametrize("name", NAMES)
def test_each_says_what_it_is_and_where_it_belongs(name: str) -> None:
    operator = build_operator(name)
    assert operator.group in GROUPS
    assert operator.task in TASKS
    assert operator.channels in TASKS[operator.task].channels
    assert len(operator.described()) > len(OPERATORS.summary(name)) + 10 or name == "denoising"
    if "sigma" in operator.values:
        assert f"σ {operator.values['sigma']:g}" in operator.described() or operator.values["sigma"] == 0


def test_all_are_in_the_table_group_by_group() -> None:
    assert sorted(in_order()) == NAMES
    groups = [OPERATORS[name].group for name in in_order()]
    assert groups == sorted(groups, key=GROUPS.index)


@pytest.mark.parametrize("name", NAMES)
def test_data_are_seeded_and_a_batch_equals_one_by_one(name: str, data: Path) -> None:
    operator = build_operator(name)
    truth = pictures(operator)
    y, physics, task = operator.simulate(truth, data)
    again, _, _ = operator.simulate(truth, data)
    alone, own, _ = operator.simulate(truth[:1], data)
    assert torch.equal(y, again)
    assert torch.equal(y[:1], alone)
    embedded = task.embed(truth)
    assert_close(physics.A(embedded)[:1], own.A(embedded[:1]))
    problem = open_problem(y[:1], own, Hints(peak=1.0, real=True))
    assert task.extract(problem.export(problem.x0())).shape == truth[:1].shape


def test_images_are_resized_or_cut(data: Path) -> None:
    resized, cut = build_operator("denoising"), build_operator("colour-blur")
    names, images = resized.images(data, 2)
    assert (names, images.shape) == (["01", "02"], (2, 1, 128, 128))
    with pytest.raises(BadInput, match=r"is 64×64, colour-blur needs 128×128"):
        cut.images(data)
    cut.size = (32, 16)  # type: ignore[misc]
    whole = np.asarray(Image.open(data / "set3c" / "0.png").convert("RGB")) / 255
    assert_close(cut.images(data)[1][0], torch.from_numpy(whole[16:48, 24:40]).float().movedim(-1, 0))


def test_missing_kernels_and_images_are_told_in_one_line(data: Path, tmp_path: Path) -> None:
    operator = build_operator("levin-k1-weak")
    with pytest.raises(BadInput, match=r"levin-k1-weak needs the kernel k1 in .*levin09.npz: "):
        operator.setting(tmp_path)
    block_pictures(tmp_path / "set12", 8, 8)
    with pytest.raises(BadInput, match=r"levin-k1-weak needs 01, 02, 05 of the test set 'set12'"):
        operator.images(tmp_path)


def test_conditions_go_through_operators_with_their_data(data: Path) -> None:
    (first, second) = conditions(data, ["denoising", "csmri-x4"], images=2)
    assert (first.operator.name, second.operator.name) == ("denoising", "csmri-x4")
    assert first.names == ["01", "02"]
    assert (first.y - first.truth).std() == pytest.approx(25 / 255, rel=0.02)


def test_the_protocol_of_dpir_is_that_of_scipy_on_bytes(data: Path) -> None:
    """Blurred bytes, then numpy's noise: no more than rounding may differ, and in few pixels."""
    ndimage = pytest.importorskip("scipy.ndimage")
    truth = phantom(40, 32)
    truth = (255 * truth).round() / 255
    operator = build_operator("levin-k3-strong")
    y, _, _ = operator.simulate(truth, data)
    kernel = operator.setting(data)["kernel"].double().numpy()
    for image, own in zip(truth, y, strict=True):
        blurred = ndimage.convolve((255 * image[0].numpy()).round().astype(np.uint8), kernel, mode="wrap")
        wanted = blurred / np.float32(255) + np.random.RandomState(0).normal(0, 7.65 / 255, blurred.shape)
        far = np.abs(own[0].numpy() - wanted) > 1e-5
        assert far.mean() < 0.01


def test_an_own_kernel_has_two_axes() -> None:
    with pytest.raises(BadInput, match=r"kernel must be \(height, width\), got shape \(1, 3, 3\)"):
        Deblur.own(torch.ones(1, 3, 3), "mine", SeededNoise(0.1))


def test_the_best_weight_of_total_variation_is_no_worse_than_the_usual_one(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pnpilot.benchmark.operator_methods.TV_ITERATIONS", 5)
    ((_, _, truth, y, physics, task),) = conditions(data, ["denoising"], images=1)
    truth, y = truth[..., :32, :32], y[..., :32, :32]
    usual, best = TV("tv", task)(y, physics), TV("tv-best", task, best=True)(y, physics, truth)
    error = [(outcome.image - truth).square().mean().item() for outcome in (usual, best)]
    assert error[1] <= error[0]
    assert best.found["weight"].item() > 0.5


def test_the_table_is_computed_once_and_drawn(
    data: Path, tmp_path: Path, say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("denoising", "phase"):
        monkeypatch.setattr(OPERATORS[name], "size", (32, 32))
    words = ["bench", "operators", "--data", data, "--out", tmp_path, "--images", "2"]
    words += ["--method", "start,dpir,learned", "--device", "cpu", "--operator"]
    said = say(*words, "denoising,phase")
    assert said.code == 0, said.err
    assert "denoising: " in said.err
    found = json.loads((tmp_path / "operators.json").read_text())
    scores = {(row["setting"], row["method"]): row["psnr"] for row in found["rows"]}
    assert set(scores) == {("denoising", "start"), ("denoising", "dpir"), ("phase", "start"), ("phase", "learned")}
    assert scores["denoising", "dpir"] > scores["denoising", "start"] + 1
    assert found["left_out"]["denoising"] == {"learned": "no policy ships for the task 'denoising'"}
    assert "dpir needs a linear physics" in found["left_out"]["phase"]["dpir"]
    assert found["operators"]["phase"]["images"] == ["0", "1"]
    assert "–" in said.out
    with Image.open(tmp_path / "operators.png") as wall:
        assert wall.size[0] > 600
    monkeypatch.setattr("pnpilot.benchmark.comparison.Comparison.reconstruct", None)
    assert say(*words, "denoising").code == 0
    assert json.loads((tmp_path / "operators.json").read_text())["rows"] == found["rows"][:2]


def test_unknown_methods_and_operators_are_refused(data: Path, tmp_path: Path, say: Callable[..., Said]) -> None:
    words = ["bench", "operators", "--data", data, "--out", tmp_path]
    said = say(*words, "--operator", "denoising", "--method", "magic")
    assert said.code == 2
    assert "unknown method 'magic'; known: start, schedule, " in said.err
    assert "unknown operator 'denosing'; did you mean 'denoising'?" in say(*words, "--operator", "denosing").err
