"""DOLPHIn, step by step."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pnpilot.baselines import dolphin
from pnpilot.baselines._phase import even_start
from pnpilot.baselines.dolphin import DOLPHIn, averaged, first_dictionary, patches
from pnpilot.metrics import psnr
from pnpilot.physics.coded_diffraction import fields
from tests.conftest import phantom
from tests.contracts import amplitude_problem, assert_close, random_like


def test_overlapping_patches_average_to_their_image() -> None:
    x = phantom(19, 23)
    columns = patches(x)
    assert columns.shape == (2, 64, (19 - 7) * (23 - 7))
    assert torch.equal(columns[0, :, 0].reshape(8, 8), x[0, 0, :8, :8])
    assert_close(averaged(columns, x), x)


def test_the_first_dictionary_is_two_orthonormal_bases() -> None:
    fft = pytest.importorskip("scipy.fft")
    atoms = first_dictionary(torch.zeros(1))
    assert atoms.shape == (64, 128)
    assert_close(atoms.norm(dim=0), torch.ones(128))
    assert torch.equal(atoms[:, :64], torch.eye(64))
    assert_close(atoms[:, 64:].mT @ atoms[:, 64:], torch.eye(64))
    image = random_like(torch.zeros(8, 8), 1)
    assert_close(atoms[:, 64:].mT @ image.flatten(), torch.from_numpy(fft.dctn(image.numpy(), norm="ortho")).flatten())


def described(codes: Tensor, dictionary: Tensor, columns: Tensor, weight: float) -> Tensor:
    """½‖columns − Da‖² + weight·‖a‖₁."""
    return (columns - dictionary @ codes).square().sum((1, 2)) / 2 + weight * codes.abs().sum((1, 2))


def test_codes_are_shrunk_towards_the_lasso() -> None:
    """Every step lowers the objective, and at the end no change of a code does."""
    columns = patches(phantom(12, 12)).double()
    dictionary = first_dictionary(columns).double().expand(2, -1, -1)
    codes, values = dictionary.mT @ columns, []
    for _ in range(800):
        values.append(described(codes, dictionary, columns, 0.05))
        codes = dolphin._sparser(codes, dictionary, columns, 0.05)
    assert (torch.stack(values).diff(dim=0) < 1e-12).all()
    pull = dictionary.mT @ (columns - dictionary @ codes)
    assert pull.abs().max() < 0.05 + 1e-4
    assert (pull - 0.05 * codes.sign())[codes.abs() > 1e-3].abs().max() < 1e-4


def test_atoms_improve_and_keep_their_norm() -> None:
    columns = patches(phantom(16, 16))
    dictionary = first_dictionary(columns).expand(2, -1, -1)
    codes = dolphin._sparser(dictionary.mT @ columns, dictionary, columns, 0.1)
    values = [described(codes, dictionary, columns, 0.0)]
    for _ in range(4):
        before = dictionary.clone()
        dictionary = dolphin._improved(dictionary, codes, columns)
        assert not torch.equal(before, dictionary)
        assert dictionary.norm(dim=1).max() < 1 + 1e-5
        values.append(described(codes, dictionary, columns, 0.0))
    assert (torch.stack(values).diff(dim=0) < 0).all()


def test_an_atom_alone_is_the_best_for_its_codes() -> None:
    """Least squares where that has norm one at most, otherwise of norm one."""
    generator = torch.Generator().manual_seed(0)
    codes, columns = (torch.randn(1, rows, 50, generator=generator, dtype=torch.float64) for rows in (1, 64))
    best = columns @ codes.mT / codes.square().sum()
    for scale in (0.5 / best.norm(), 3 / best.norm()):
        atom = dolphin._improved(torch.zeros(1, 64, 1, dtype=torch.float64), codes, scale * columns)
        assert_close(atom, scale * best / max(1.0, (scale * best).norm().item()), 1e-10)


@pytest.mark.parametrize("alpha", [0, 27])
def test_the_image_step_never_raises_the_objective(alpha: float) -> None:
    problem = amplitude_problem(phantom(16, 16), alpha)
    target = patches(phantom(16, 16).flip(0))

    def objective(x: Tensor) -> Tensor:
        misfit = fields(problem.masks, x).abs().square() - problem.y.square()
        return misfit.square().sum((1, 2, 3)) / 4 + 0.05 / 2 * (patches(x) - target).square().sum((1, 2))

    x, step, values = even_start(problem).real, torch.full((2,), 0.1), []
    for _ in range(60):
        values.append(objective(x))
        x, step = dolphin._fitted(problem, x, target, 0.05, step)
        assert 0 <= x.min() <= x.max() <= 1
    falls = -torch.stack(values).diff(dim=0)
    assert (falls > -1e-5 * torch.stack(values)[:-1]).all()
    assert (values[-1] < 0.2 * values[0]).all()
    free = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(objective(free).sum(), free)
    start = even_start(problem).real.requires_grad_()
    (at_start,) = torch.autograd.grad(objective(start).sum(), start)
    assert (x - (x - gradient).clamp(0, 1)).norm() < 0.05 * (start - (start - at_start).clamp(0, 1)).norm()


def test_the_dictionary_is_learnt_once_the_fixed_iterations_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = dolphin._improved

    def counted(*given: Tensor) -> Tensor:
        calls.append(1)
        return real(*given)

    monkeypatch.setattr(dolphin, "_improved", counted)
    monkeypatch.setattr(dolphin, "FIXED", 2)
    monkeypatch.setattr(DOLPHIn, "iterations", 5)
    DOLPHIn().solve(amplitude_problem(phantom(16, 16, 1)), coupling=0.003, sparsity=0.001)
    assert len(calls) == 3


def test_more_sparsity_is_a_simpler_image() -> None:
    """It first loses noise, and in the end everything."""
    truth = phantom(24, 24, 1)
    problem = amplitude_problem(truth, 81)
    images = [DOLPHIn().solve(problem, coupling=0.003, sparsity=sparsity) for sparsity in (0.0, 0.001, 1.0)]
    plain, sparse, empty = (psnr(image, truth).item() for image in images)
    assert sparse > plain + 3
    assert not images[2].any()
    assert empty < plain
