"""Several sets of coil maps, and a phase that is known roughly: the physics, its problem, and what they are for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from deepinv.physics import GaussianNoise, MultiCoilMRI
from torch import Tensor

from pnpilot.errors import BadInput
from pnpilot.io.cfl import read_cfl, write_cfl
from pnpilot.io.raw import Raw, Scratch, Stored
from pnpilot.physics import Sense
from pnpilot.problems import Hints, open_problem
from pnpilot.problems._data import energy
from pnpilot.problems.base import problem_type
from pnpilot.problems.multi_coil import MultiCoil
from pnpilot.recon.fourier import to_kspace
from pnpilot.recon.modalities.cartesian import Cartesian
from pnpilot.recon.options import Options
from pnpilot.recon.prepared import batch
from pnpilot.tasks.multi_coil import simulated_maps
from pnpilot.types import per_sample
from tests.conftest import phantom
from tests.contracts import assert_close, inner, own_tensors, random_like

HEIGHT, WIDTH, COILS = 32, 40, 4
needs_bart = pytest.mark.skipif(shutil.which("bart") is None, reason="BART is not installed: apt-get install bart")


def sets_of_maps(sets: int, batch: int = 1) -> Tensor:
    """(batch, sets, coils, H, W), the later sets fainter, as where an object folds onto itself."""
    each = [
        torch.stack(
            [simulated_maps(COILS, HEIGHT, WIDTH, torch.Generator().manual_seed(9 * b + s)) for s in range(sets)]
        )
        for b in range(batch)
    ]
    return torch.stack(each) * (0.5 ** torch.arange(sets))[None, :, None, None, None]


def masks(batch: int = 2) -> Tensor:
    mask = (torch.rand(batch, 1, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(3)) < 0.5).float()
    mask[..., HEIGHT // 2, WIDTH // 2] = 1
    return mask


def sense(sets: int = 2, held: Tensor | float = 0.0, batch: int = 2) -> Sense:
    return Sense(masks(batch), sets_of_maps(sets, batch), held, noise_model=GaussianNoise(0.01))


def problem_of(sets: int, held: Tensor | float, batch: int = 2) -> tuple[MultiCoil, Sense, Tensor]:
    physics = sense(sets, held, batch)
    images = [
        weight * phantom(HEIGHT, WIDTH, batch) for weight in (*(0.8 / (1 + s) for s in range(sets)), *[0.3] * sets)
    ]
    y = physics(torch.cat(images, 1))
    problem = open_problem(y, physics, Hints(peak=1.0))
    assert isinstance(problem, MultiCoil)
    return problem, physics, y


# The physics.


@pytest.mark.parametrize("sets", [1, 2, 3])
def test_adjoint_is_the_adjoint(sets: int) -> None:
    physics = sense(sets)
    size = (2 * sets, HEIGHT, WIDTH)
    assert float(physics.adjointness_test(img_size=size, num_samples=2)) < 1e-5
    x = random_like(torch.zeros(2, *size), 1)
    y = random_like(physics.A(x), 2)
    assert_close(inner(physics.A(x), y), inner(x, physics.A_adjoint(y)), 1e-4)
    assert physics.A(x).shape == (2, 2, COILS, HEIGHT, WIDTH)
    assert physics.A_adjoint(y).shape == x.shape


def test_with_one_set_it_is_deepinvs() -> None:
    ours = sense(1)
    theirs = MultiCoilMRI(mask=ours.mask, coil_maps=ours.coil_maps[:, 0], noise_model=GaussianNoise(0.01))
    x = random_like(torch.zeros(2, 2, HEIGHT, WIDTH), 1)
    y = random_like(theirs.A(x), 2)
    assert_close(ours.A(x), theirs.A(x))
    assert_close(ours.A_adjoint(y), theirs.A_adjoint(y))
    one, other = open_problem(theirs.A(x), ours), open_problem(theirs.A(x), theirs)
    assert_close(one.x0(), other.x0())
    assert_close(one.D(one.x0()), other.D(one.x0()))


def test_coils_see_the_sum_of_what_is_behind_each_set() -> None:
    both = sense(2)
    x = random_like(torch.zeros(2, 4, HEIGHT, WIDTH), 1)
    parts = [Sense(both.mask, both.coil_maps[:, s : s + 1]).A(x[:, [s, 2 + s]]) for s in range(2)]
    assert_close(both.A(x), parts[0] + parts[1])


def test_its_maps_stay_and_it_moves_with_them() -> None:
    physics = sense(2, 0.1)
    for wrong in ({"mask": masks()}, {"coil_maps": sets_of_maps(1)[0]}):
        with pytest.raises(ValueError, match="make a new Sense"):
            physics.update(**wrong)
    again = physics.clone().to("cpu")
    assert torch.equal(again.coil_maps, physics.coil_maps)
    assert torch.equal(again.held, torch.tensor([0.1]))
    assert problem_type(physics) is MultiCoil


# The problem.

HELD = [0.0, 0.2, torch.tensor([0.0, 0.3])]


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("sets", [1, 2])
def test_the_problem_is_the_physics_over_its_norm(sets: int, held: Tensor | float) -> None:
    problem, physics, y = problem_of(sets, held)
    x = random_like(problem.x0(), 1)
    assert x.shape == (2, sets, HEIGHT, WIDTH)
    layout = problem.export(x)
    real, imaginary = physics.A_adjoint(physics.A(layout)).chunk(2, 1)
    normal = problem.A_adjoint(problem.A(x))
    squared = inner(normal, torch.complex(real, imaginary)) / energy(normal)
    assert_close(normal, torch.complex(real, imaginary) / per_sample(squared, x))
    assert_close(problem.misfit(x), energy(physics.A(layout) - y) / (2 * squared), 1e-4)
    weight = torch.as_tensor(held).expand(2)
    assert_close(problem.D(x), problem.misfit(x) + weight / 2 * energy(x.imag), 1e-5)
    assert_close(problem.D(x.real), problem.misfit(x.real))
    v, w = random_like(x, 4), random_like(x, 5)
    assert_close(inner(problem.normal(v), w), inner(v, problem.normal(w)), 1e-4)
    assert float((inner(problem.A(v), problem.A(v)) / energy(v)).max()) < 1.01


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("sets", [1, 2])
def test_the_gradient_is_that_of_the_data_term(sets: int, held: Tensor | float) -> None:
    """D is quadratic: differences of any size are exact."""
    problem, _, _ = problem_of(sets, held)
    x, way = random_like(problem.x0(), 1), random_like(problem.x0(), 2)
    difference = (problem.D(x + way) - problem.D(x - way)) / 2
    assert_close(difference, inner(problem.grad(x), way), 1e-4)


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("sets", [1, 2])
def test_the_data_step_is_optimal(sets: int, held: Tensor | float) -> None:
    problem, _, _ = problem_of(sets, held)
    v, mu = random_like(problem.x0(), 1), torch.tensor([0.1, 0.7])
    z = problem.prox(v, mu)
    for _ in range(4):
        z = problem.prox(v, mu, start=z)
    slope = problem.grad(z) + per_sample(mu, v) * (z - v)
    assert slope.abs().max() < 1e-3 * v.abs().max()


@pytest.mark.parametrize("held", HELD)
def test_images_of_a_batch_do_not_touch_each_other(held: Tensor | float) -> None:
    both, physics, y = problem_of(2, held)
    v, mu = random_like(both.x0(), 1), torch.tensor([0.1, 0.7])
    weights = torch.as_tensor(held).expand(2)
    for place in range(2):
        one = slice(place, place + 1)
        own = Sense(physics.mask[one], physics.coil_maps[one], weights[one], noise_model=GaussianNoise(0.01))
        alone = open_problem(y[one], own, Hints(peak=1.0))
        chosen = both.select(torch.tensor([place]))
        for problem in (alone, chosen):
            assert_close(problem.x0(), both.x0()[one], 1e-3)
            assert_close(problem.grad(v[one]), both.grad(v)[one], 1e-3)
            assert_close(problem.prox(v[one], mu[one]), both.prox(v, mu)[one], 1e-3)
            assert_close(problem.D(v[one]), both.D(v)[one], 1e-3)
    for name, tensor in own_tensors(both.select(torch.tensor([1, 0, 1]))).items():
        assert len(tensor) == 3, f"{name} does not follow the batch"


def test_what_does_not_fit_is_refused() -> None:
    _, physics, y = problem_of(2, 0.0)
    wrong = [
        (Sense(physics.mask, physics.coil_maps, torch.ones(3)), "3 weights of the phase for 2 images"),
        (Sense(physics.mask, physics.coil_maps[:, :, 1:]), "they must agree"),
        (Sense(physics.mask, physics.coil_maps * torch.nan), "the coil maps hold NaN or infinite values"),
        (Sense(physics.mask, 0 * physics.coil_maps), "the coil maps are zero everywhere"),
    ]
    for own, told in wrong:
        with pytest.raises(BadInput, match=told):
            open_problem(y, own)


# What they are for.


def solved(problem: MultiCoil, mu: float, rounds: int = 60) -> Tensor:
    """argmin D(x) + μ/2 ‖x‖², in the units of the data (B, sets, H, W)."""
    nothing, weight = torch.zeros_like(problem.x0()), torch.full((len(problem),), mu)
    z = nothing
    for _ in range(rounds):
        z = problem.prox(nothing, weight, start=z)
    return torch.complex(*problem.export(z).chunk(2, 1))


def folded() -> tuple[np.ndarray, np.ndarray]:
    """K-space (coils, 32, 40) of an object that is higher than the field of view, and the object in twice the field."""
    rows, columns = np.linspace(-1, 1, 64)[:, None], np.linspace(-1, 1, 40)
    image = (0.5 + phantom(64, 40, 1)[0, 0].numpy()) * ((rows / 0.7) ** 2 + (columns / 0.8) ** 2 < 1)
    image = image * np.exp(1j * (rows + 0.5 * columns))
    maps = simulated_maps(6, 64, 40, torch.Generator().manual_seed(1)).numpy()
    noise = np.random.default_rng(0).standard_normal((2, 6, 64, 40)) * 0.001
    return (to_kspace(maps * image) + noise[0] + 1j * noise[1])[:, ::2].astype(np.complex64), image


@needs_bart
def test_two_sets_of_maps_do_as_barts(tmp_path: Path) -> None:
    kspace, _ = folded()
    lines = np.zeros(32, bool)
    lines[::2] = lines[8:24] = True
    measured = kspace * lines[:, None]
    for name, array in (("whole", kspace), ("measured", measured)):
        write_cfl(tmp_path / name, array.transpose(1, 2, 0)[:, :, None])
    penalty = 0.01
    for command in (
        "ecalib -m2 -c0.01 -r24 whole maps",
        f"pics -l2 -r{penalty} -w1 -i200 measured maps image",
    ):
        subprocess.run(["bart", *command.split()], cwd=tmp_path, check=True, capture_output=True)
    maps = torch.from_numpy(read_cfl(tmp_path / "maps").squeeze().transpose(3, 2, 0, 1).copy())
    theirs = torch.from_numpy(read_cfl(tmp_path / "image").squeeze().transpose(2, 0, 1).copy())
    mask = torch.from_numpy(np.tile(lines[:, None], (1, 40)).astype(np.float32))[None, None]
    y, physics = torch.from_numpy(measured)[None], Sense(mask, maps[None])
    assert float(theirs[1].abs().max()) > 0.1 * float(theirs[0].abs().max()), "there is something behind the second set"
    problem = open_problem(y, physics)
    assert isinstance(problem, MultiCoil)
    x = random_like(problem.x0(), 1)
    again = physics.A_adjoint(physics.A(torch.cat([x.real, x.imag], 1)))
    squared = energy(torch.complex(*again.chunk(2, 1))).sqrt() / energy(problem.normal(x)).sqrt()
    ours = solved(problem, penalty / float(squared))
    assert_close(ours[0], theirs, 0.02)
    one = Sense(mask, maps[None, :1])
    alone = open_problem(y, one)
    assert isinstance(alone, MultiCoil)
    assert float(alone.misfit(alone.x0())) > 3 * float(problem.misfit(problem.x0())), (
        "one set does not explain the data"
    )


def fine(size: int) -> np.ndarray:
    """An object with details, and a smooth phase."""
    rows, columns = np.linspace(-1, 1, size)[:, None], np.linspace(-1, 1, size)
    grain = torch.rand(1, 1, size, size, generator=torch.Generator().manual_seed(0))
    details = torch.nn.functional.avg_pool2d(grain, 3, 1, 1)[0, 0].numpy()
    turn = np.exp(1j * (0.8 * rows**2 - 0.6 * rows * columns + 0.5))
    return np.asarray((phantom(size, size, 1)[0, 0].numpy() + 0.5 * details) * turn)


@pytest.mark.parametrize(
    ("coils", "share", "left"), [(1, 0.625, 0.85), (1, 0.75, 0.85), (4, 0.625, 0.2), (4, 0.75, 0.2)]
)
@pytest.mark.parametrize("turned", [False, True])
def test_the_phase_constraint_helps_partial_fourier(coils: int, share: float, left: float, turned: bool) -> None:
    """Against the true image; without noise, so that nothing else decides."""
    truth, maps = fine(64), simulated_maps(coils, 64, 64, torch.Generator().manual_seed(1)).numpy()
    maps = np.abs(maps) if coils == 1 else maps
    kspace = to_kspace(truth * maps).astype(np.complex64)
    missing = 64 - round(64 * share)
    if turned:
        kspace[..., :missing] = 0
    else:
        kspace[:, -missing:] = 0
    axes = ("coil", "y", "x")
    errors = {}
    for step in ("", "phase"):
        raw = Raw(Stored(kspace, axes), "numpy", maps=Stored(maps.astype(np.complex64), axes))
        image = Cartesian(raw, Options(without=frozenset({step} - {""})), Scratch(Path("/nowhere")), None, None)[0]
        problem = open_problem(*batch([image]))
        assert isinstance(problem, MultiCoil)
        found = solved(problem, 1e-4)[0].numpy()
        found = found if image.turn is None else found * image.turn.numpy()
        errors[step] = np.linalg.norm(found[0] - truth) / np.linalg.norm(truth)
    assert errors[""] < left * errors["phase"], "with the constraint, both magnitude and phase are nearer to the truth"
