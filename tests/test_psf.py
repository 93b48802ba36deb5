"""Point-spread functions as files hold them."""

from __future__ import annotations

import numpy as np
import pytest

from pnpilot.errors import BadInput
from pnpilot.io.raw import COLOUR, Stored
from pnpilot.recon.psf import point_spread


def spot(side: int = 31, row: float = 15, column: float = 15, width: float = 2.0) -> np.ndarray:
    rows, columns = np.ogrid[:side, :side]
    return np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / (2 * width**2))


def kernel_of(light: np.ndarray, **wanted: bool) -> tuple[np.ndarray, dict[str, str]]:
    axes = {2: ("y", "x"), 3: ("y", "x", COLOUR)}[light.ndim]
    return point_spread(Stored(light, axes), **wanted)


@pytest.mark.parametrize("shape", [(5, 5), (4, 6), (1, 1), (9, 3)])
def test_sides_are_odd_and_sums_one(shape: tuple[int, int]) -> None:
    kernel, said = kernel_of(np.full(shape, 7))
    assert kernel.dtype == np.float32 and kernel.sum() == pytest.approx(1) and said == {}
    assert all(side % 2 for side in kernel.shape[1:])
    assert (kernel > 0).sum() == np.prod(shape)


def test_a_kernel_with_the_centre_in_its_middle_stays_as_it_is() -> None:
    light = np.random.default_rng(0).random((7, 7)) + np.eye(7)[::-1] * 20
    kernel, said = kernel_of(light, centring=False)
    assert np.allclose(kernel[0], light / light.sum()) and said == {}


def test_the_centre_of_mass_is_the_centre_unless_asked() -> None:
    kernel, said = kernel_of(spot(row=12, column=19))
    straight, _ = kernel_of(spot())
    assert np.allclose(kernel, straight, atol=1e-4)
    assert "pixel (12, 19), counts as its centre" in said["centring"]
    left, said = kernel_of(spot(row=12, column=19), centring=False)
    assert said == {} and left.shape > kernel.shape
    assert np.unravel_index(left[0].argmax(), left[0].shape) == (left.shape[1] // 2 - 3, left.shape[2] // 2 + 4)


def test_no_larger_than_its_light_reaches() -> None:
    kernel, _ = kernel_of(np.pad(spot(), 100))
    assert 11 <= len(kernel[0]) <= 17
    assert np.allclose(kernel[0], spot(len(kernel[0]), *(len(kernel[0]) // 2,) * 2) / (2 * np.pi * 4), rtol=0.01)


def test_the_background_of_a_camera_is_taken_off() -> None:
    counts = np.random.default_rng(0).poisson(100 + 3000 * spot(64, 32, 32))
    kernel, said = kernel_of(counts)
    clean, _ = kernel_of(spot(64, 32, 32))
    assert said["background"].startswith("the background of the point-spread function, 10")
    reach = len(clean[0]) // 2
    middle = kernel[0, len(kernel[0]) // 2 - reach :, len(kernel[0][0]) // 2 - reach :][
        : 2 * reach + 1, : 2 * reach + 1
    ]
    assert np.abs(middle - clean[0]).sum() < 0.1
    kept, said = kernel_of(counts, background=False)
    assert said == {} and kept.shape == (1, 65, 65), "all of it is light"


@pytest.mark.parametrize(
    "light", [spot(17, 8, 8, 5), np.ones((17, 17)), spot(9, 4, 4, 2)], ids=["wide", "box", "small"]
)
def test_the_foot_of_a_blur_is_not_background(light: np.ndarray) -> None:
    kernel, said = kernel_of(light)
    assert said == {} and np.allclose(kernel[0], light / light.sum(), atol=1e-6)


def test_colours_have_kernels_of_their_own_unless_they_are_alike() -> None:
    narrow, wide = spot(width=1), spot(width=3)
    kernel, _ = kernel_of(np.stack([narrow, wide, wide], -1))
    assert len(kernel) == 3 and np.allclose(kernel.sum((1, 2)), 1)
    assert kernel[0].max() > 4 * kernel[1].max()
    assert np.array_equal(kernel_of(np.stack([wide] * 3, -1))[0], kernel_of(wide)[0])


@pytest.mark.parametrize(
    ("light", "told"),
    [
        (np.zeros((5, 5)), "zero everywhere"),
        (np.full((5, 5), np.nan), "NaN or infinite"),
        (spot() - 0.1, "values below zero, [0-9]+ % of the others"),
        (spot() * 1j, "must be real numbers"),
        (np.ones((4, 5, 5)), "must be one picture"),
        (np.ones(5), "must be one picture"),
        (np.lib.stride_tricks.as_strided(np.zeros(1), (2**20, 2**20), (0, 0)), "too large"),
    ],
)
def test_what_is_none_is_refused(light: np.ndarray, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        point_spread(Stored(light))


def test_one_colour_without_light_is_refused() -> None:
    with pytest.raises(BadInput, match="zero in one of its colours"):
        kernel_of(np.stack([spot(), spot(), 0 * spot()], -1))
