"""The constants of methods that search them: for each setting, for data between settings, and where they are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pnpilot.baselines import BASELINES, build_baseline
from pnpilot.baselines._mri import MRIBaseline
from pnpilot.baselines._phase import PhaseBaseline
from pnpilot.baselines._searched import Searched, _nearest
from pnpilot.errors import BadInput, BadWeights
from pnpilot.problems.amplitudes import AmplitudeProblem
from pnpilot.problems.masked_fourier import MaskedFourier
from pnpilot.simulation import simulated
from pnpilot.tasks.csmri import CSMRI
from pnpilot.tasks.phase import PhaseRetrieval
from tests.conftest import phantom
from tests.contracts import assert_close, problem_of

SEARCHED = [name for name in BASELINES if issubclass(BASELINES[name], Searched)]


@pytest.mark.parametrize("name", SEARCHED)
def test_constants_are_there_for_every_setting_with_the_command_that_found_them(name: str) -> None:
    kind = BASELINES[name]
    assert issubclass(kind, Searched)
    table, task = kind.table(), kind.task()
    assert list(table["settings"]) == [setting.label for setting in task.settings]
    for setting in task.settings:
        own = table["settings"][setting.label]
        (numbers,) = kind.conditions(simulated(task, phantom(32, 32, 1), setting))
        assert {number: own[number] for number in numbers} == {number: setting[number] for number in numbers}
        assert own["constants"].keys() == kind.grid.keys()
        assert all(np.isfinite(value) and value >= 0 for value in own["constants"].values())
    assert table["command"].startswith(f"pnpilot train baseline {name} ")


class Recorder(Searched[MaskedFourier], MRIBaseline):
    """Its image is its constant."""

    name = "recorder"
    grid = {"level": (0.1, 0.2)}

    @classmethod
    def table(cls) -> dict[str, Any]:
        settings = {
            setting.label: {**setting.values, "constants": {"level": 0.1 * place}}
            for place, setting in enumerate(CSMRI().settings)
        }
        return {"settings": settings}

    def solve(self, problem: MaskedFourier, *_: Any, level: float) -> Tensor:
        return torch.full_like(problem.mask, level)


def test_each_image_gets_the_constants_of_its_setting() -> None:
    settings = [CSMRI().settings[place] for place in (7, 3, 3, 0)]
    y, physics = CSMRI().simulate(phantom(32, 32, 4), settings)
    assert_close(Recorder()(y, physics)[:, 0, 5, 5], torch.tensor([0.7, 0.3, 0.3, 0.0]))
    assert_close(Recorder({"level": 0.5})(y, physics)[:, 0, 5, 5], torch.full((4,), 0.5))
    assert Recorder({"level": 0.5}).made_with() == {"level": 0.5}
    assert Recorder().made_with()["x2 sigma=10"] == {"level": 0.1}


@pytest.mark.parametrize(
    ("label", "nearest"),
    [
        ("x3 sigma=7", "x4 sigma=5"),
        ("x5 sigma=12", "x4 sigma=10"),
        ("x6 sigma=7", "x8 sigma=5"),
        ("x2.5 sigma=30", "x2 sigma=15"),
        ("x20 sigma=0", "x8 sigma=5"),
        ("cartesian x3 sigma=13", "x4 sigma=15"),
    ],
)
def test_other_settings_get_the_nearest_constants(label: str, nearest: str) -> None:
    (conditions,) = Recorder.conditions(problem_of(phantom(128, 128, 1), label))
    assert _nearest(conditions, Recorder.table()["settings"]) == nearest


@pytest.mark.parametrize("size", [(32, 32), (128, 128), (96, 128), (230, 180)])
@pytest.mark.parametrize("kind", ["", "cartesian ", "random "])
def test_the_settings_of_the_benchmark_find_themselves_at_any_size(kind: str, size: tuple[int, int]) -> None:
    settings = [CSMRI().named(kind + setting.label) for setting in CSMRI().settings]
    problem = simulated(CSMRI(), phantom(*size, 1).repeat(len(settings), 1, 1, 1), settings)
    assert isinstance(problem, MaskedFourier)
    found = [_nearest(own, Recorder.table()["settings"]) for own in Recorder.conditions(problem)]
    assert found == [setting.label for setting in CSMRI().settings]


@pytest.mark.parametrize(
    ("label", "nearest"),
    [
        *((setting.label, setting.label) for setting in PhaseRetrieval().settings),
        ("alpha=0", "alpha=9"),
        ("alpha=15", "alpha=9"),
        ("3 masks alpha=17", "alpha=27"),
        ("8 masks alpha=46", "alpha=27"),
        ("6 masks alpha=50", "alpha=81"),
        ("alpha=500", "alpha=81"),
    ],
)
def test_amplitudes_get_the_constants_of_the_nearest_noise(label: str, nearest: str) -> None:
    settings = {setting.label: setting.values for setting in PhaseRetrieval().settings}
    setting = PhaseRetrieval().named(label)
    problem = simulated(PhaseRetrieval(), phantom(24, 20, 1), setting)
    assert isinstance(problem, AmplitudeProblem)
    (conditions,) = PhaseBaseline.conditions(problem)
    assert conditions == pytest.approx(setting.values)
    assert _nearest(conditions, settings) == nearest


@pytest.mark.parametrize("content", [None, "{"])
def test_missing_constants_are_said_with_the_command_that_finds_them(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "recpf.json").write_text(content)
    monkeypatch.setattr("pnpilot.baselines._searched.parameters_file", lambda name: tmp_path / f"{name}.json")
    with pytest.raises(BadInput if content is None else BadWeights, match="pnpilot train baseline recpf"):
        build_baseline("recpf")(*CSMRI().simulate(phantom(32, 32), CSMRI.setting()))
