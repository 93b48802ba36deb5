"""Finished images that are measured anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pnpilot.errors import BadInput
from pnpilot.io.raw import Raw, Stored
from pnpilot.recon.fourier import to_kspace
from pnpilot.recon.modalities.cartesian import Cartesian
from pnpilot.recon.options import Options
from pnpilot.recon.simulate import Measured, simulated
from tests.conftest import phantom
from tests.prepared_scans import (
    HEIGHT,
    UNUSED,
    WIDTH,
)


def pictures(count: int = 3) -> np.ndarray:
    return phantom(HEIGHT, WIDTH, count)[:, 0].numpy()


@pytest.mark.parametrize("axes", [None, ("slice", "y", "x"), ("y", "slice", "x")])
def test_simulated_data_are_the_k_space_of_the_pictures_and_say_so(axes: tuple[str, ...] | None) -> None:
    order = [0, 1, 2] if axes is None else [("slice", "y", "x").index(name) for name in axes]
    raw = Raw(Stored(pictures().transpose(order), axes), "picture", pictures=True)
    raw, told = simulated(raw, "cartesian x3 sigma=2", seed=1)
    assert told.startswith("SIMULATED: the file holds finished images")
    assert told.endswith("This is no reconstruction of what a scanner measured")
    assert "cartesian ×3, with noise of 2/255 of its largest value" in told
    images = Cartesian(raw, Options(), UNUSED, None, None)
    assert len(images) == 3
    assert raw.measured is not None
    assert isinstance(raw.measured.data, Measured)
    mask = raw.measured.data.mask
    for number in (0, 2):
        noise = images[number].y.numpy()[0] - mask * to_kspace(pictures()[number])
        level = np.sqrt(np.square(np.abs(noise)).sum() / (2 * mask.sum()))
        assert level == pytest.approx(2 / 255 * pictures()[number].max(), rel=0.15)
        assert np.array_equal(images[number].mask.numpy(), mask)
        assert np.array_equal(raw.measured.data.truth(images.place(number)), pictures()[number])
    assert not np.array_equal(images.kspace[0] - images.kspace[1], images.kspace[1] - images.kspace[2])
    assert torch.equal(images[1].y, images[1].y), "the same noise each time"


def test_axes_of_pictures_may_be_named() -> None:
    raw = Raw(Stored(pictures().transpose(1, 2, 0)), "numpy", pictures=True)
    names = ("y", "x", "time")
    images = Cartesian(simulated(raw, "radial x2", 0, names)[0], Options(axes=names), UNUSED, None, None)
    assert len(images) == 3
    assert np.abs(images[2].y.numpy()).max() > 0
    assert "without noise" in simulated(Raw(Stored(pictures()), "numpy", pictures=True), "radial x2", 0)[1]


@pytest.mark.parametrize(
    ("order", "told"),
    [
        ("spiral x4", "--simulate takes one of calibrated, cartesian, radial, random with an acceleration"),
        ("radial 4", "--simulate takes one of"),
        ("radial x0", "an acceleration is from 1 to 100, got 0"),
        ("radial x4 sigma=300", "sigma is from 0 to 255, got 300"),
    ],
)
def test_orders_that_are_not_understood_are_refused(order: str, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        simulated(Raw(Stored(pictures()), "picture", pictures=True), order, 0)


@pytest.mark.parametrize(
    ("array", "axes", "told"),
    [
        (np.ones((2, 3, 8, 8)), None, r"pictures of shape \(2, 3, 8, 8\): name the axes"),
        (np.ones((2, 8, 8)), ("coil", "y", "x"), "rows and columns, y and x, and no axis coil"),
        (np.ones((2, 8, 8)), ("z", "y", "x"), "rows and columns, y and x, and no axis z"),
        (np.full((8, 8), np.nan), None, "a picture holds NaN or infinite values"),
    ],
)
def test_pictures_that_cannot_be_measured_are_refused(array: np.ndarray, axes: Any, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        raw, _ = simulated(Raw(Stored(array, axes), "picture", pictures=True), "radial x2", 0)
        Cartesian(raw, Options(), UNUSED, None, None)[0]
    with pytest.raises(BadInput, match="--simulate is for finished images; this file holds a measurement"):
        simulated(Raw(Stored(array, axes), "numpy"), "radial x2", 0)
