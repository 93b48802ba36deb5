"""Other people's methods: what all of them must keep to, whoever wrote them and whatever task they serve."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache

import pytest
import torch
from deepinv.physics import GaussianNoise, Inpainting, MultiCoilMRI, Physics
from torch import Tensor

from pnpilot.baselines import BASELINES, Baseline, build_baseline, prdeep
from pnpilot.baselines._one_task import OneTask
from pnpilot.benchmark.tables import TABLES
from pnpilot.errors import BadInput, Incompatible
from pnpilot.metrics import psnr
from pnpilot.physics import selected
from pnpilot.tasks import TASKS, Task, build_task
from pnpilot.tasks.csmri import CSMRI
from tests.conftest import phantom
from tests.contracts import assert_close, pictures

NAMES = list(BASELINES)
SERVED = [(name, task) for name in NAMES for task in sorted(BASELINES[name].serves)]
"""Each baseline with each of its tasks."""

built: Callable[[str], Baseline] = cache(build_baseline)


def unlike(task: Task) -> tuple[Tensor, Tensor, Physics]:
    """Three images with their data: the first and the last setting and a drawn one, if a batch may hold these."""
    truth, generator = pictures(task, batch=3), torch.Generator().manual_seed(1)
    try:
        return truth, *task.simulate(truth, [task.settings[0], *task.draw(1, generator), task.settings[-1]])
    except Incompatible:
        return truth, *task.simulate(truth, task.draw(3, generator))


def check(name: str, image: Tensor, task: Task, truth: Tensor) -> None:
    """What a result must look like."""
    assert image.shape == task.embed(truth).shape
    assert image.dtype == torch.float32
    assert not image.requires_grad
    assert torch.isfinite(image).all()
    assert image.flatten(1).std(dim=1).min() > 1e-3, "a blank image"
    if BASELINES[name].bounded:
        assert image.min() >= 0
        assert image.max() <= 1
        assert torch.equal(task.embed(task.extract(image)), image), "not real"


# What it says of itself.


@pytest.mark.parametrize("name", NAMES)
def test_each_serves_a_task(name: str) -> None:
    assert BASELINES[name].serves
    assert BASELINES[name].serves <= set(TASKS)


@pytest.mark.parametrize("task", TABLES)
def test_the_methods_of_the_paper_are_there(task: str) -> None:
    assert set(TABLES[task].order) <= {name for name, served in SERVED if served == task}


@pytest.mark.parametrize("name", NAMES)
def test_each_says_who_published_it_what_it_is_and_what_it_is_made_with(name: str) -> None:
    kind = BASELINES[name]
    assert kind.iterations >= 0
    assert re.search(r"^nobody\b|\b(19|20)\d\d\b", kind.reference), "neither a year nor nobody"
    assert "\n" not in kind.reference
    assert 10 < len(BASELINES.summary(name)) < 130
    assert kind.obstacle() is None, kind.obstacle()
    made_with = built(name).made_with()
    assert json.loads(json.dumps(made_with)) == made_with


@pytest.mark.parametrize("name", NAMES)
def test_what_is_missing_is_said_with_what_brings_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules come with an extra of the package, programs with one of Debian."""
    monkeypatch.setattr("pnpilot.baselines.base.find_spec", lambda _: None)
    monkeypatch.setattr("pnpilot.baselines.base.which", lambda _: None)
    kind = BASELINES[name]
    if not kind.modules and not kind.programs:
        assert kind.obstacle() is None
        return
    obstacle = kind.obstacle()
    assert obstacle is not None
    assert all(part in obstacle for part in kind.modules or kind.programs)
    remedy = f"pip install 'pnpilot[{kind.extra}]'" if kind.modules else f"apt-get install {' '.join(kind.programs)}"
    with pytest.raises(BadInput, match=rf"^{re.escape(name)} needs .*: {re.escape(remedy)}$"):
        build_baseline(name)


# What it does with the data of its tasks.


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("name", "task_name"), SERVED)
def test_a_batch_of_different_settings_equals_one_by_one(name: str, task_name: str) -> None:
    task = build_task(task_name)
    truth, y, physics = unlike(task)
    given = y.clone()
    images = built(name)(y, physics)
    check(name, images, task, truth)
    assert torch.equal(y, given)
    for index in range(len(y)):
        alone = built(name)(y[[index]], selected(physics, torch.tensor([index]), len(y)))
        assert_close(images[[index]], alone, 1e-4)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("name", "task_name"), SERVED)
def test_the_same_data_give_the_same_image(name: str, task_name: str) -> None:
    """Whatever was reconstructed before, and whoever built the method."""
    task = build_task(task_name)
    y, physics = task.simulate(pictures(task), task.settings[0])
    first = built(name)(y, physics)
    torch.manual_seed(7)
    assert torch.equal(built(name)(y, physics), first)
    assert torch.equal(build_baseline(name)(y, physics), first)


@pytest.mark.parametrize(("name", "task_name"), SERVED)
def test_an_image_with_black_borders_is_nearer_to_the_truth_than_none(
    name: str, task_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After thirty iterations, if the method takes as many."""
    monkeypatch.setattr(BASELINES[name], "iterations", min(BASELINES[name].iterations, 30))
    monkeypatch.setattr(prdeep, "STEPS", 8)
    task = build_task(task_name)
    truth = pictures(task, batch=1)
    truth = truth * (truth > 0.4)
    image = built(name)(*task.simulate(truth, task.settings[0]))
    check(name, image, task, truth)
    assert psnr(task.extract(image), truth) > psnr(torch.zeros_like(truth), truth)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("name", "task_name"), SERVED)
def test_odd_sizes_are_reconstructed_where_the_task_has_them(name: str, task_name: str) -> None:
    task = build_task(task_name)
    truth = pictures(task, 33, 31, 1)
    try:
        y, physics = task.simulate(truth, task.settings[0])
    except BadInput as refusal:
        pytest.skip(str(refusal))
    check(name, built(name)(y, physics), task, truth)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("name", "task_name"), SERVED)
def test_an_answer_is_the_image_with_an_iteration_count_for_each(name: str, task_name: str) -> None:
    _, y, physics = unlike(build_task(task_name))
    image, iterations = built(name).answer(y, physics)
    assert_close(image, built(name)(y, physics))
    assert iterations.shape == (len(y),)
    assert ((iterations >= 0) & (iterations <= BASELINES[name].iterations)).all()
    if type(built(name)).answer is Baseline.answer:
        assert (iterations == BASELINES[name].iterations).all()


# What it does with other data.


@cache
def operators() -> dict[str, tuple[Tensor, Physics]]:
    """Data of every task, of two of deepinv's operators, and of one that is nothing."""
    truth = phantom(32, 32)
    pixels = Inpainting((1, 32, 32), mask=torch.ones(1, 32, 32), noise_model=GaussianNoise(0.1))
    maps = torch.ones(1, 2, 32, 32, dtype=torch.complex64)
    coils = MultiCoilMRI(coil_maps=maps, mask=torch.ones(1, 1, 32, 32), noise_model=GaussianNoise(0.1))
    found = {"pixels": (pixels(truth), pixels), "coils": (coils(CSMRI().embed(truth)), coils)}
    tasks = {name: build_task(name) for name in TASKS}
    simulated = {name: task.simulate(pictures(task), task.settings[0]) for name, task in tasks.items()}
    return {**found, "nothing": (truth, Physics()), **simulated}


def others(name: str) -> list[tuple[Tensor, Physics]]:
    """Data that a baseline was not made for."""
    return [data for kind, data in operators().items() if kind not in BASELINES[name].serves]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", NAMES)
def test_another_physics_is_reconstructed_or_refused_in_one_line(name: str) -> None:
    for y, physics in others(name):
        try:
            image = built(name)(y, physics)
        except Incompatible as refusal:
            assert "needs" in str(refusal), "the reason is missing"
            assert "\n" not in str(refusal)
        else:
            assert not issubclass(BASELINES[name], OneTask)
            assert torch.isfinite(image).all()
