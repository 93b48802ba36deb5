"""Every physics of deepinv: what becomes of it is what docs/operators.md says, alone and in a batch."""

from __future__ import annotations

import importlib
import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deepinv
import deepinv.physics as dp
import pytest
import torch
from deepinv.physics import GaussianNoise, Physics
from deepinv.physics.functional import gaussian_blur
from deepinv.utils import TensorList
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from pnpilot import PnPilot
from pnpilot.denoisers import Denoiser
from pnpilot.metrics import psnr
from pnpilot.physics import CodedDiffraction, ShotNoise
from pnpilot.problems import Hints, open_problem
from pnpilot.types import to_two_channels
from tests.conftest import phantom
from tests.contracts import assert_close, random_like

DOCS = Path(__file__).parent.parent / "docs"
SIDE = 24


@pytest.fixture
def operators(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("operators")


def test_the_page_says_what_becomes_of_every_physics(operators: Any) -> None:
    assert operators.missing() == set()
    written = [[cell.strip() for cell in line.split("|")[1:-1]] for line in _table(operators)]
    skipped = {"NonCartesianMRI"}  # needs a library of its own, and takes long to import
    rows = [operators.tried(name, side=16) for name in operators.CATALOGUE if name not in skipped]
    told = {row[0]: (row[1], _without_numbers(row[2])) for row in written}
    assert told.keys() - skipped - operators.NEEDS.keys() == {row.physics for row in rows}
    for row in rows:
        assert told[row.physics] == (row.problem, _without_numbers(row.step)), "run python docs/operators.py"
    worse = {row[0] for row in written if row[4] and float(row[4]) < float(row[3]) + 0.5}
    # Colours that were not measured; and an adjoint that is none, which is told.
    assert worse == {"Decolorize", "CompressiveSpectralImaging, even sides"}


def _table(operators: Any) -> list[str]:
    found = operators.MARKED.search(operators.PAGE.read_text())
    return [line for line in found[2].splitlines()[2:] if line.startswith("|")]


def _without_numbers(text: str) -> str:
    """Sizes and shares depend on the picture."""
    return re.sub(r"\d+(\.\d+)?", "n", text)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def masks(images: list[int], *shape: int) -> Tensor:
    return torch.stack([(torch.rand(*shape, generator=generator(one)) < 0.5 + 0.2 * one).float() for one in images])


def noise(images: list[int]) -> GaussianNoise:
    return GaussianNoise(torch.tensor([0.02 + 0.03 * one for one in images]))


def kernels(images: list[int]) -> Tensor:
    return torch.cat([gaussian_blur(sigma=(1.0 + one, 1 + 0.5 * one), psf_size=(7, 7)) for one in images])


def fading(images: list[int]) -> dict[str, Tensor]:
    share = torch.linspace(0, 1, SIDE).expand(len(images), 1, SIDE, SIDE)
    filters = [torch.cat([kernels([one])[0], kernels([one + 1])[0]])[None] for one in images]
    return {"filters": torch.stack(filters), "multipliers": torch.stack([1 - share, share], 2)}


def maps(images: list[int]) -> Tensor:
    drawn = [torch.randn(3, SIDE, SIDE, dtype=torch.complex64, generator=generator(one)) for one in images]
    return 1 + 0.3 * torch.stack(drawn)


def phases(images: list[int]) -> Tensor:
    turns = torch.stack([torch.rand(3, SIDE, SIDE, generator=generator(one)) for one in images])
    return torch.polar(torch.ones_like(turns), 2 * math.pi * turns)


def tiles(images: list[int]) -> Tensor:
    return torch.stack([torch.rand(1, 9, 5, 5, generator=generator(one)) / 12 for one in images])


def holes(images: list[int]) -> dp.Inpainting:
    return dp.Inpainting((1, SIDE, SIDE), mask=masks(images, 1, SIDE, SIDE), noise_model=noise(images))


SIZE = (1, SIDE, SIDE)
OWN: dict[str, Callable[[list[int]], Physics]] = {
    "Denoising": lambda own: dp.Denoising(noise(own)),
    "Inpainting": holes,
    "DecomposablePhysics": lambda own: dp.DecomposablePhysics(
        mask=masks(own, *SIZE), img_size=SIZE, noise_model=noise(own)
    ),
    "Blur": lambda own: dp.Blur(kernels(own), padding="reflect", noise_model=noise(own)),
    "BlurFFT": lambda own: dp.BlurFFT(SIZE, filter=kernels(own), noise_model=noise(own)),
    "Downsampling": lambda own: dp.Downsampling(SIZE, filter=kernels(own), noise_model=noise(own)),
    "SpaceVaryingBlur": lambda own: dp.SpaceVaryingBlur(**fading(own), padding="circular", noise_model=noise(own)),
    "TiledSpaceVaryingBlur": lambda own: dp.TiledSpaceVaryingBlur(
        tiles(own), patch_size=12, stride=6, noise_model=noise(own)
    ),
    "MRI": lambda own: dp.MRI(mask=masks(own, *SIZE), noise_model=noise(own)),
    "MultiCoilMRI": lambda own: dp.MultiCoilMRI(masks(own, *SIZE), maps(own), noise_model=noise(own)),
    "SequentialMRI": lambda own: dp.SequentialMRI(
        mask=masks(own, 1, 3, SIDE, SIDE).repeat(1, 2, 1, 1, 1), noise_model=noise(own)
    ),
    "StackedLinearPhysics": lambda own: dp.StackedLinearPhysics([holes(own), dp.Denoising(GaussianNoise(0.1))]),
    "ComposedLinearPhysics": lambda own: dp.compose(
        dp.Blur(kernels(own), padding="circular"), dp.Downsampling(SIZE, filter=kernels(own), noise_model=noise(own))
    ),
    "CompressiveSpectralImaging": lambda own: dp.CompressiveSpectralImaging(
        (3, SIDE, SIDE), mask=masks(own, 3, SIDE, SIDE), mode="sd", noise_model=noise(own)
    ),
    "CodedDiffraction": lambda own: CodedDiffraction(phases(own), ShotNoise(torch.tensor([9.0 + one for one in own]))),
    "Poisson noise": lambda own: dp.Inpainting(
        SIZE, mask=masks(own, *SIZE), noise_model=dp.PoissonNoise(torch.tensor([0.01 + 0.02 * one for one in own]))
    ),
}
"""Physics whose parameters differ between the images of a batch."""


@pytest.mark.parametrize("name", OWN)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_parameters_of_each_image_survive_a_batch(name: str) -> None:
    truth = phantom(SIDE, SIDE)
    truth = to_two_channels(truth) if "MRI" in name else truth.repeat(1, 3, 1, 1) if "Spectral" in name else truth
    own = [0, 1]
    physics = OWN[name](own)
    y = physics(truth)
    hints = Hints(peak=1.0, real=True)
    batch = open_problem(y, physics, hints)
    for place in own:
        data = TensorList([part[[place]] for part in y]) if isinstance(y, TensorList) else y[[place]]
        alone, part = open_problem(data, OWN[name]([place]), hints), batch.select(torch.tensor([place]))
        v, mu = random_like(alone.x0(), 3), torch.tensor([0.1])
        assert_close(part.x0(), alone.x0(), 1e-3)
        assert_close(part.prox(v, mu), alone.prox(v, mu), 1e-4)
        assert part.units.sigma_n is not None
        assert alone.units.sigma_n is not None
        assert_close(part.units.sigma_n, alone.units.sigma_n, 1e-4)


class Pictures(Dataset[dict[str, Any]]):
    """With a mask and a noise level of its own for each."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> dict[str, Any]:
        physics, truth = holes([index]), phantom(SIDE, SIDE)[index : index + 1]
        torch.manual_seed(index)
        params = {"mask": physics.mask[0], "sigma": physics.noise_model.sigma[0]}
        return {"x": truth[0], "y": physics(truth)[0], "params": params}


def test_deepinv_tests_the_model_as_it_is(smoother: Denoiser) -> None:
    """With its own loop, its metrics, and parameters that come with the images."""
    model, data = PnPilot(smoother, policy="fixed"), Pictures()
    physics = dp.Inpainting(SIZE, mask=1.0, noise_model=GaussianNoise(0.5))
    metrics = [deepinv.metric.PSNR(), deepinv.metric.SSIM(), deepinv.metric.MSE()]
    quiet: dict[str, Any] = {"verbose": False, "show_progress_bar": False}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="non_blocking_transfers")
        found = deepinv.test(model, DataLoader(data, 2), physics, metrics, **quiet)
        again = deepinv.Trainer(model, physics, None, None, metrics=metrics, **quiet).test(DataLoader(data, 1))
    assert found["PSNR"] > found["PSNR no learning"] + 5
    assert found["SSIM"] > found["SSIM no learning"]
    alone = [psnr(model(data[index]["y"][None], holes([index])), data[index]["x"][None]) for index in range(2)]
    for scores in (found, again):  # a batch of two, and one by one
        assert scores["PSNR"] == pytest.approx(float(torch.cat(alone).mean()), abs=0.01)
