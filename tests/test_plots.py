"""Pictures: what is drawn in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pnpilot import plots
from pnpilot.benchmark.strength import Strength
from pnpilot.solvers import SOLVERS

RUN: dict[str, Any] = {
    "solver": "admm",
    "iterations": 4,
    "decided_at": [2, 4],
    "parameters": {"sigma": [0.2, 0.1, 0.08, 0.04], "mu": [0.1, 0.2, 0.3, 0.4]},
}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Figures as they are saved."""
    figures: list[Any] = []
    monkeypatch.setattr(plots, "_save", lambda figure, _: figures.append(figure))
    return figures


def test_a_trace_shows_parameters_stop_probability_and_psnr(drawn: list[Any]) -> None:
    traces = {"a scan": {**RUN, "stop_probability": [0.1, 0.9], "psnr": [28.0, 30.0]}, "another": RUN}
    plots.plot_traces("trace.png", traces)
    axes = {axis.get_ylabel(): axis.get_lines() for axis in drawn[0].axes}
    assert list(axes) == ["σ × 255", "μ", "probability to stop", "PSNR (dB)"]
    assert list(axes["σ × 255"][0].get_ydata()) == pytest.approx([51, 25.5, 20.4, 10.2])
    assert list(axes["μ"][1].get_ydata()) == [0.1, 0.2, 0.3, 0.4]
    assert list(axes["probability to stop"][0].get_xdata()) == [2, 4]
    assert list(axes["probability to stop"][0].get_ydata()) == [0.1, 0.9]
    assert list(axes["PSNR (dB)"][0].get_ydata()) == [28.0, 30.0]


def test_what_networks_do_not_set_is_drawn_where_a_schedule_did(drawn: list[Any]) -> None:
    """Beside older traces, which do not have it."""
    forgetting = {**RUN, "parameters": {**RUN["parameters"], "memory": [0.7] * 4}}
    plots.plot_traces("trace.png", {"blur": forgetting, "older": RUN})
    assert [axis.get_ylabel() for axis in drawn[-1].axes] == ["σ × 255", "μ", "ρ"]
    plots.plot_traces("trace.png", {"mask": {**RUN, "parameters": {**RUN["parameters"], "memory": [1.0] * 4}}})
    assert [axis.get_ylabel() for axis in drawn[-1].axes] == ["σ × 255", "μ"]


def test_strengths_show_each_optimum_and_the_policys_choice(drawn: list[Any]) -> None:
    sigma, curves = torch.tensor([10.0, 20.0, 40.0]) / 255, torch.tensor([[27.0, 30.0], [29.0, 28.0], [26.0, 25.0]])
    found = Strength(sigma, curves, torch.tensor([18.0, 12.0]) / 255, torch.tensor([29.5, 30.5]))
    plots.plot_strength("strength.png", found, ["a", "b"], "title")
    points = {
        (line.get_marker(), round(float(line.get_xdata()[0]), 3), float(line.get_ydata()[0]))
        for line in drawn[0].axes[0].get_lines()
        if len(line.get_xdata()) == 1
    }
    assert points == {("o", 20.0, 29.0), ("o", 10.0, 30.0), ("*", 18.0, 29.5), ("*", 12.0, 30.5)}


def test_a_picture_is_written_where_a_string_says(tmp_path: Path) -> None:
    plots.plot_traces(str(tmp_path / "x.png"), {"a scan": {**RUN, "stop_probability": [0.1, 0.9]}})
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_every_parameter_of_every_solver_has_an_axis(drawn: list[Any]) -> None:
    for name in SOLVERS:
        params = SOLVERS[name].params
        own = {"solver": name, "iterations": 1, "decided_at": [1], "parameters": {key: [0.5] for key in params}}
        plots.plot_traces("trace.png", {"a scan": own})
        labels = [axis.get_ylabel() for axis in drawn.pop().axes]
        assert labels == [limits.symbol or key for key, limits in params.items()]
