"""What every plug-in must keep to. Registering a thing enrols it: the test files run these over the registries."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pnpilot.problems import Hints, Problem, open_problem
from pnpilot.problems.amplitudes import AmplitudeProblem
from pnpilot.problems.masked_fourier import MaskedFourier
from pnpilot.simulation import simulated
from pnpilot.tasks import Task
from pnpilot.tasks.csmri import CSMRI
from pnpilot.tasks.phase import PhaseRetrieval
from tests.conftest import phantom

SIZE = 32


def pictures(task: Task, height: int = SIZE, width: int = SIZE, batch: int = 2) -> Tensor:
    """True images with as many channels as the task takes: grey if it can."""
    return phantom(height, width, batch).repeat(1, min(task.channels), 1, 1)


def example_problem(task: Task, *, batch: int = 2, size: int = SIZE, **hints: Any) -> tuple[Problem, Tensor]:
    """A small problem of a task with its true images."""
    truth = pictures(task, size, size, batch)
    y, physics = task.simulate(truth, task.settings[0], seed=3)
    return open_problem(y, physics, Hints(peak=hints.pop("peak", 1.0), **hints)), truth


def problem_of(truth: Tensor, label: str) -> MaskedFourier:
    """Single-coil MRI of these images in a setting by its label."""
    problem = simulated(CSMRI(), truth, CSMRI().named(label))
    assert isinstance(problem, MaskedFourier)
    return problem


def amplitude_problem(truth: Tensor, alpha: float = 27, masks: int = 4) -> AmplitudeProblem:
    """Coded diffraction of these images."""
    problem = simulated(PhaseRetrieval(), truth, PhaseRetrieval.setting(alpha, masks))
    assert isinstance(problem, AmplitudeProblem)
    return problem


def inner(a: Tensor, b: Tensor) -> Tensor:
    """Real inner product per image."""
    return (a.conj() * b).real.flatten(1).sum(1)


def random_like(x: Tensor, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(x.shape, dtype=x.dtype, generator=generator)


def assert_close(actual: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    """Equal up to a tolerance relative to the largest value."""
    scale = expected.abs().max().clamp_min(1e-12)
    difference = ((actual - expected).abs().max() / scale).item()
    assert difference < tolerance, f"relative difference {difference:.2e} over {tolerance:.0e}"


def own_tensors(problem: Problem) -> dict[str, Tensor]:
    """The tensors that a problem holds, those of its units included."""
    held = {**vars(problem), "peak": problem.units.peak, "sigma_n": problem.units.sigma_n}
    return {name: value for name, value in held.items() if isinstance(value, Tensor)}
