"""Images that look real and non-negative, and are not: the guess is given up where the data object."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
from deepinv.physics import MRI, Blur, GaussianNoise
from deepinv.physics.functional import gaussian_blur
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.guess import OBJECTED, objection
from pnpilot.policies.fixed import Fixed
from pnpilot.problems import Hints, open_problem
from pnpilot.solvers import build_solver
from tests.conftest import phantom
from tests.contracts import assert_close

SIDE = 64


def spot(radius: int = 4) -> Tensor:
    """A few pixels (1, 1, H, W) inside the blobs of the phantom."""
    place = torch.arange(SIDE) - SIDE // 2
    return (place[:, None].square() + place.square() <= radius**2)[None, None]


def scan(angle: float | Tensor, sigma: float = 0.02) -> tuple[Tensor, MRI, Tensor]:
    """k-space of two phantoms, the first of them turned by an angle, with its physics, and the images."""
    generator = torch.Generator().manual_seed(0)
    mask = (torch.rand(SIDE, SIDE, generator=generator) < 0.4).float()
    mask[SIDE // 2 - 8 : SIDE // 2 + 8, SIDE // 2 - 8 : SIDE // 2 + 8] = 1
    truth = phantom(SIDE, SIDE).to(torch.complex64)
    truth[:1] *= torch.exp(1j * torch.as_tensor(angle))
    physics = MRI(mask=mask, img_size=(2, SIDE, SIDE), noise_model=GaussianNoise(sigma, rng=generator))
    return physics(torch.cat([truth.real, truth.imag], 1)), physics, truth


@pytest.mark.parametrize("policy", ["schedule", "learned"])
@pytest.mark.parametrize(("angle", "radius"), [(math.pi / 2, 2), (math.pi, 4)])
def test_a_vessel_with_a_phase_is_not_lost(angle: float, radius: int, policy: str) -> None:
    """It is too small to break the symmetry of k-space, or to darken the zero-filled image."""
    y, physics, truth = scan(angle * spot(radius))
    assert open_problem(y, physics).units.real.tolist() == [True, True]
    model = PnPilot() if policy == "schedule" else PnPilot.from_pretrained("csmri")
    with pytest.warns(UserWarning, match="^image 0 looked real and non-negative, .* real=True or real=False decides$"):
        image = model(y, physics)
    inside = spot(radius)[0, 0]
    found = torch.complex(image[0, 0], image[0, 1])[inside].mean()
    assert abs(found - truth[0, 0][inside].mean()) < 0.35 * truth[0, 0][inside].abs().mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = PnPilot(real=True)(y, physics)
    lost = torch.complex(told[0, 0], told[0, 1])[inside].mean() - truth[0, 0][inside].mean()
    assert abs(lost) > 0.6 * truth[0, 0][inside].abs().mean()


def test_the_others_of_a_batch_keep_their_guess() -> None:
    y, physics, _ = scan(math.pi / 2 * spot(2))
    result = PnPilot.from_pretrained("csmri").reconstruct(y, physics)
    assert [record["policy"] for record in result.trace] == ["schedule", "learned"]
    assert result.trace[0]["fallback"] == "not real and non-negative"
    assert len(result.warnings) == 1
    alone = PnPilot.from_pretrained("csmri").reconstruct(y[1:], physics)
    assert alone.warnings == []
    assert_close(result.image[1:], alone.image, 1e-4)
    assert not result.image[1, 1].any()


@pytest.mark.parametrize("angle", [0.05, 0.12])
def test_a_small_constant_phase_passes_through(angle: float) -> None:
    y, physics, truth = scan(angle)
    image = PnPilot().reconstruct(y, physics).image
    found = torch.complex(image[0, 0], image[0, 1])
    assert abs((found * truth[0, 0].conj()).sum().angle()) < 0.01


def test_a_patch_below_zero_is_not_lost() -> None:
    truth = phantom(SIDE, SIDE)
    truth[1:] = torch.where(spot(), -0.3, truth[1:])
    physics = Blur(gaussian_blur(sigma=(1.0, 1.0)), padding="circular")
    physics.noise_model = GaussianNoise(0.01, rng=torch.Generator().manual_seed(0))
    y = physics(truth)
    assert open_problem(y, physics).units.real.tolist() == [True, True]
    with pytest.warns(UserWarning, match="^image 1 looked real and non-negative"):
        image = PnPilot()(y, physics)
    assert image[1][spot()[0]].mean() < -0.15
    assert image[0].min() >= 0


@pytest.mark.parametrize("level", [0.02, 0.004])
def test_noise_does_not_object(level: float) -> None:
    """Neither where its level is known, nor where it is said to be a fifth of what it is."""
    y, physics, truth = scan(0.0)
    problem = open_problem(y, physics, Hints(sigma_n=level, peak=1.0))
    assert (objection(problem, truth) < OBJECTED - 2).all()


def test_what_the_policy_did_is_not_blamed_on_the_guess() -> None:
    """Constants that leave images far from their data are no reason to give the guess up."""
    y, physics, _ = scan(0.0)
    model = PnPilot(policy=Fixed(build_solver("admm"), 3, sigma=0.19, mu=1.0))
    assert {record["policy"] for record in model.reconstruct(y, physics).trace} == {"fixed"}
