"""K-space along trajectories: the physics against sums over pixels and other programs, and the problem behind it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from deepinv.physics import GaussianNoise
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.denoisers import Denoiser
from pnpilot.errors import BadInput, Incompatible
from pnpilot.io.cfl import read_cfl, write_cfl
from pnpilot.physics import NonCartesian, joined
from pnpilot.physics.density import density_weights
from pnpilot.physics.nufft import images_of, samples_of, spectrum
from pnpilot.problems import Hints, open_problem
from pnpilot.problems._data import energy
from pnpilot.problems._least_squares import conjugate_gradients
from pnpilot.problems.base import problem_type
from pnpilot.problems.noncartesian import NonCartesianProblem
from pnpilot.simulation import simulated
from pnpilot.tasks.spiral import Spiral, radial, spiral
from pnpilot.types import to_two_channels
from tests.conftest import phantom
from tests.contracts import assert_close, inner, random_like

pytest.importorskip("finufft")


def places(count: int = 40, seed: int = 0) -> Tensor:
    """Anywhere in k-space (samples, 2)."""
    return torch.rand(count, 2, generator=torch.Generator().manual_seed(seed)) - 0.5


def exact(image: Tensor, trajectory: Tensor) -> Tensor:
    """By the sum over all pixels."""
    height, width = image.shape
    rows, columns = torch.arange(height) - height // 2, torch.arange(width) - width // 2
    turns = trajectory[:, 0, None, None] * rows[:, None] + trajectory[:, 1, None, None] * columns
    waves = torch.exp(-2j * torch.pi * turns.double())
    return (waves * image.to(torch.complex128)).sum((1, 2)) / (height * width) ** 0.5


@pytest.mark.parametrize("sizes", [(12, 10), (9, 14), (11, 7)])
def test_samples_are_sums_over_the_image_and_images_their_adjoint(sizes: tuple[int, int]) -> None:
    x, trajectory = random_like(torch.zeros(3, *sizes, dtype=torch.complex64), 1), places()
    found = samples_of(x, trajectory)
    assert_close(found, torch.stack([exact(one, trajectory) for one in x]).to(found), 1e-5)
    y = random_like(found, 2)
    assert_close(inner(found, y), inner(x, images_of(y, trajectory, sizes)), 1e-5)


def test_gradients_pass_through_both() -> None:
    x, trajectory = random_like(torch.zeros(1, 6, 5, dtype=torch.complex64), 1).requires_grad_(), places()
    y = samples_of(x, trajectory)
    (slope,) = torch.autograd.grad(y.abs().square().sum() / 2, x)
    assert_close(slope, images_of(y.detach(), trajectory, (6, 5)), 1e-5)
    y = y.detach().requires_grad_()
    image = images_of(y, trajectory, (6, 5))
    (slope,) = torch.autograd.grad(image.abs().square().sum() / 2, y)
    assert_close(slope, samples_of(image.detach(), trajectory), 1e-5)


def test_samples_are_those_of_sigpy() -> None:
    fourier = pytest.importorskip("sigpy.fourier")
    x, trajectory = random_like(torch.zeros(1, 16, 12, dtype=torch.complex64), 1), places()
    coord = (trajectory * torch.tensor([16, 12])).numpy()
    theirs = fourier.nufft(x[0].numpy(), coord, oversamp=2, width=6)
    assert_close(samples_of(x, trajectory)[0], torch.from_numpy(theirs), 1e-3)


@pytest.mark.skipif(shutil.which("bart") is None, reason="BART is not installed")
def test_samples_are_those_of_bart(tmp_path: Path) -> None:
    """Whose first axis is x, in cycles per field of view."""
    x, trajectory = random_like(torch.zeros(16, 16, dtype=torch.complex64), 1), places()
    write_cfl(tmp_path / "image", x.T.numpy()[:, :, None])
    way = torch.cat([16 * trajectory.flip(1), torch.zeros(len(trajectory), 1)], 1)
    write_cfl(tmp_path / "way", way.T.numpy().astype(np.complex64)[:, :, None])
    subprocess.run(["bart", "nufft", "-P", "way", "image", "samples"], cwd=tmp_path, check=True, capture_output=True)
    theirs = torch.from_numpy(read_cfl(tmp_path / "samples").ravel())
    ours = samples_of(x[None], trajectory)[0]
    assert_close(ours / ours.norm(), theirs / theirs.norm(), 2e-3)


@pytest.mark.parametrize("sizes", [(12, 10), (9, 14)])
def test_the_filter_is_sampling_and_back(sizes: tuple[int, int]) -> None:
    """Also with weights."""
    x, trajectory = random_like(torch.zeros(1, *sizes, dtype=torch.complex64), 1), places()
    weights = torch.rand(len(trajectory))
    wanted = images_of(weights * samples_of(x, trajectory), trajectory, sizes)
    kernel = spectrum(trajectory, weights, sizes)
    found = torch.fft.ifft2(kernel * torch.fft.fft2(x, s=kernel.shape))[:, : sizes[0], : sizes[1]]
    assert_close(found, wanted, 1e-5)


def test_weights_are_shares_of_cells() -> None:
    grid = np.stack(np.meshgrid(*(np.arange(-8, 8) / 16,) * 2, indexing="ij"), -1).reshape(-1, 2)
    assert np.allclose(density_weights(grid, (16, 16)), 1)
    assert np.allclose(density_weights(np.repeat(grid, 3, 0), (16, 16)), 1 / 3)
    # The more of k-space a sample of a spoke stands for, the further out it is, up to a cell of its own.
    spokes = radial(64, 0.5, 0.3).double().numpy()
    radius, weights = np.linalg.norm(spokes, axis=1), density_weights(spokes, (64, 64))
    inner_ring, outer_ring = ((radius > low) & (radius < low + 0.05) for low in (0.1, 0.4))
    assert 2.5 < weights[outer_ring].mean() / weights[inner_ring].mean() < 4.5
    whole = spiral(64, 0.7, 0.1).double().numpy()
    assert 0.8 < density_weights(whole, (64, 64)).sum() / (np.pi * 32**2) < 1.1


def spirals(batch: int = 1, size: int = 24, sigma: float = 5) -> tuple[NonCartesianProblem, Tensor]:
    truth = phantom(size, size, batch)
    problem = simulated(Spiral(), truth, Spiral.setting("spiral", 3, sigma))
    assert isinstance(problem, NonCartesianProblem)
    return problem, truth


def test_the_data_term_needs_no_samples() -> None:
    """AᴴA and Aᴴy tell it, down to noise of a thousandth of the peak."""
    problem, truth = spirals(sigma=0.25)
    near = truth.to(torch.complex64)
    for x in (near, problem.x0(), random_like(near, 3)):
        assert_close(problem.D(x), energy(problem.A(x) - problem.y) / 2, 1e-2)


def test_the_physics_is_opened_by_its_own_problem_and_not_by_that_of_a_grid() -> None:
    physics = NonCartesian(places()[None, None], torch.ones(1, 1, 8, 8, dtype=torch.complex64))
    assert problem_type(physics) is NonCartesianProblem


def test_images_of_a_batch_have_trajectories_of_their_own() -> None:
    """Spirals are turned by chance; joined, they measure what each of them measures."""
    problem, truth = spirals(batch=2)
    first, second = problem.trajectory
    assert not torch.equal(first, second)
    one, other = (Spiral().physics(Spiral.setting(way), (1, 24, 24), torch.Generator()) for way in ("spiral", "radial"))
    with pytest.raises(Incompatible, match="the shapes of their trajectory are"):
        joined([one, other], to_two_channels(truth), [])


def test_the_noise_level_is_that_of_the_outermost_samples() -> None:
    truth = phantom(48, 48, 1)
    task = Spiral()
    y, physics = task.simulate(truth, task.setting("spiral", 2, 10))
    physics.noise_model = GaussianNoise(0.0)
    told, found = (open_problem(y, physics, Hints(peak=1.0, sigma_n=level)) for level in (10 / 255, "estimate"))
    assert told.units.sigma_n is not None and found.units.sigma_n is not None
    assert 0.9 < float(found.units.sigma_n / told.units.sigma_n) < 1.3


def test_pnpilot_is_nearer_to_the_truth_than_cg_sense_at_its_best(smoother: Denoiser) -> None:
    truth, task = phantom(48, 48, 1), Spiral()
    y, physics = task.simulate(truth, task.setting("spiral", 3, 10))
    problem = open_problem(y, physics, Hints(peak=1.0))
    assert isinstance(problem, NonCartesianProblem)

    def error(image: Tensor) -> float:
        return float((image.abs() - truth).square().mean())

    runs = [conjugate_gradients(problem.normal, problem.back, 0 * problem.back, count, 0.0) for count in range(2, 20)]
    found = task.extract(PnPilot(smoother)(y, physics))
    assert error(found) < 0.8 * min(map(error, runs))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trajectory": places()}, r"real \(batch or 1, 1, samples, 2\)"),
        ({"trajectory": 20 * places()[None, None]}, "cycles per pixel, from -0.5 to 0.5"),
        ({"coil_maps": torch.ones(1, 2, 8, 8)}, "coil maps must be complex"),
        ({"weights": torch.ones(1, 1, 1, 9)}, r"weights must be \(batch or 1, 1, 1, 40\)"),
        ({"weights": -torch.ones(1, 1, 1, 40)}, "not negative"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Tensor], message: str) -> None:
    given = {"trajectory": places()[None, None], "coil_maps": torch.ones(1, 2, 8, 8, dtype=torch.complex64)}
    with pytest.raises(BadInput, match=message):
        NonCartesian(**(given | change))


def test_data_that_do_not_fit_are_refused() -> None:
    physics = NonCartesian(places()[None, None], torch.ones(1, 2, 8, 8, dtype=torch.complex64))
    with pytest.raises(BadInput, match="3 coils and 40 samples, the maps are of 2 coils"):
        open_problem(torch.ones(1, 3, 40, dtype=torch.complex64), physics)
    with pytest.raises(BadInput, match=r"must be \(batch, 2, coils, samples\)"):
        open_problem(torch.ones(1, 3, 2, 40), physics)
