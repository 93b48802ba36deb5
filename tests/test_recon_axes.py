"""Which axis of an array is what: told, found, or refused where it cannot be known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pnpilot.errors import BadInput
from pnpilot.io.raw import Stored
from pnpilot.recon.axes import named
from pnpilot.recon.fourier import to_kspace
from pnpilot.recon.options import parsed
from pnpilot.tasks._masks import MASKS, build_mask
from pnpilot.tasks.multi_coil import simulated_maps
from tests.conftest import phantom

NAMES = ("slice", "coil", "y", "x")


def scan(slices: int = 3, coils: int = 4, noise: float = 0.02, height: int = 48, width: int = 40) -> np.ndarray:
    """K-space (slice, coil, y, x) of different objects with a phase."""
    maps = simulated_maps(coils, height, width, torch.Generator().manual_seed(1)).numpy()
    turn = np.exp(1j * np.linspace(-1, 1, height))[:, None]
    kspace = to_kspace((phantom(height, width, slices).numpy() * turn) * maps)
    parts = np.random.default_rng(0).standard_normal((2, *kspace.shape))
    return (kspace + noise * (parts[0] + 1j * parts[1])).astype(np.complex64)


def found(array: np.ndarray) -> tuple[str, ...]:
    axes = named(Stored(array), None)[0].axes
    assert axes is not None
    return tuple(name.rstrip("01234") for name in axes)


def plane_alike(axes: tuple[str, ...]) -> tuple[str, ...]:
    """Rows and columns cannot be told apart: the first is called y."""
    left = iter(("y", "x"))
    return tuple(next(left) if name in ("y", "x") else name for name in axes)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 3, 1, 0), (1, 0, 2, 3), (3, 0, 2, 1)])
@pytest.mark.parametrize("kind", [None, *MASKS])
def test_slices_and_coils_are_found(order: tuple[int, ...], kind: str | None) -> None:
    kspace = scan()
    if kind is not None:
        kspace = kspace * build_mask(kind, 48, 40, 3, torch.Generator().manual_seed(0)).numpy()
    assert found(kspace.transpose(order)) == plane_alike(tuple(NAMES[axis] for axis in order))


@settings(max_examples=25, deadline=None)
@given(
    order=st.permutations(range(5)),
    slices=st.sampled_from([1, 2, 5, 9]),
    coils=st.sampled_from([1, 2, 3, 10]),
    noise=st.sampled_from([0.0, 0.02]),
)
def test_any_order_is_found(order: list[int], slices: int, coils: int, noise: float) -> None:
    """With an axis of one somewhere; what is one long has no name that counts."""
    kspace = scan(slices, coils, noise)[None].transpose(order)
    lengths = {"one": 1, "slice": slices, "coil": coils, "y": 48, "x": 40}
    wanted = plane_alike(tuple(("one", *NAMES)[axis] for axis in order))
    assert found(kspace) == tuple(name if lengths[name] > 1 else "one" for name in wanted)


@pytest.mark.parametrize("coils", [8, 32])
@pytest.mark.parametrize("kind", ["slices", "cine", "echoes"])
def test_many_coils_without_phases_of_their_own(kind: str, coils: int) -> None:
    """As sigpy simulates them; neighbours of many coils see nearly the same."""
    from sigpy.mri import birdcage_maps

    objects = phantom(48, 40, 4)[:, 0].numpy()
    if kind == "cine":  # one of them, which moves and whose phase drifts
        objects = np.stack([np.roll(objects[0], number % 2, 0) * np.exp(1j * number) for number in range(4)])
    if kind == "echoes":
        field = np.linspace(-1, 1, 48)[:, None] ** 2 + np.linspace(0, 1, 40)
        objects = np.stack([objects[0] * np.exp((1.5j * field - 0.2) * number) for number in range(4)])
    kspace = to_kspace(objects[:, None] * birdcage_maps((coils, 48, 40), r=1.3)).astype(np.complex64)
    assert found(kspace) == NAMES
    assert found(kspace[2]) == NAMES[1:]
    assert found(kspace[:, 2]) == ("slice", "y", "x")


def test_two_axes_that_may_be_coils_are_refused() -> None:
    one, other = (simulated_maps(count, 48, 40, torch.Generator().manual_seed(count)).numpy() for count in (3, 4))
    kspace = to_kspace(one[:, None] * other * phantom(48, 40, 1)[0].numpy()).astype(np.complex64)
    with pytest.raises(BadInput, match="two axes may be coils: name them"):
        named(Stored(kspace), None)


@pytest.mark.parametrize("scale", [1e-25, 1e-12, 1e9])
def test_any_unit_will_do(scale: float) -> None:
    assert found(scan().astype(complex) * scale) == NAMES


@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_real_and_imaginary_part_as_an_axis_of_two(place: int, order: tuple[int, ...]) -> None:
    coils = scan(1, 4)[0].transpose(order)
    parts = np.stack([coils.real, coils.imag], place)
    names = plane_alike(tuple(("coil", "y", "x")[axis] for axis in order))
    assert found(parts) == (("part", *names) if place == 0 else (*names, "part"))


def test_a_single_other_axis_is_coils_or_slices() -> None:
    kspace = scan(4, 5)
    assert found(kspace[0]) == ("coil", "y", "x")
    assert found(kspace[:, 0]) == ("slice", "y", "x")
    assert found(kspace[0, 0]) == ("y", "x")
    array, told = named(Stored(kspace[0]), None)
    assert told == [
        "took axis 0 for 5 coils, axis 1 for y, 48 samples, axis 2 for x, 40 samples; --axes names them otherwise"
    ]
    assert array.data is not None


def test_volumes_have_three_axes_of_space() -> None:
    depth = np.exp(-(np.linspace(-2, 2, 20) ** 2))[:, None, None]
    maps = simulated_maps(3, 48, 40, torch.Generator().manual_seed(1)).numpy()[:, None]
    volume = to_kspace(maps * depth * phantom(48, 40, 1)[0].numpy(), (1, 2, 3)).astype(np.complex64)
    assert found(volume) == ("coil", "z", "y", "x")
    assert found(volume.transpose(3, 1, 2, 0)) == ("z", "y", "x", "coil"), "which of them is which, only a user knows"


def test_empty_slices_are_no_coils() -> None:
    kspace = scan(8, 4)
    kspace[[0, 3, 4]] = 0
    assert found(kspace) == NAMES
    assert found(0 * kspace[:, 0]) == ("slice", "y", "x")
    kspace[5, 1, 20, 20] = np.nan
    kspace[6, 1, 24, 20] = np.inf
    assert found(kspace) == NAMES, "what is not finite is refused later, with the number of the image"


@pytest.mark.parametrize("part", [np.s_[:], np.s_[0], np.s_[:, 0], np.s_[0, 0]], ids=["both", "coils", "slices", "one"])
def test_a_zero_frequency_in_the_corner_is_told(part: tuple[int, ...]) -> None:
    corner, lines = (np.fft.ifftshift(scan(noise=0.05), axes=axes)[part] for axes in ((-2, -1), -2))
    for array in (corner, lines, np.stack([corner.real, corner.imag], -1)):
        with pytest.raises(BadInput, match="the zero frequency of the array seems to be in the corner"):
            named(Stored(array), None)


@pytest.mark.parametrize(
    ("array", "told"),
    [
        (np.ones(9, np.complex64), "an image needs two axes that are longer than one"),
        (np.ones((1, 9, 1), np.complex64), "an image needs two axes that are longer than one"),
        (np.ones((8, 8, 8), np.complex64), "name its axes, as in --axes slice,coil,y,x"),
        (np.ones((2, 3, 4, 48, 40), np.complex64), "name its axes, as in --axes slice,coil,y,x"),
        (scan(3, 1).repeat(4, 1), "no axis looks like coils: name them, as in --axes slice,time,y,x"),
        (scan(1, 6, noise=0.08)[0], "axis 0 may be coils or not: name them, as in --axes coil,y,x"),
    ],
    ids=["line", "line of three axes", "cube", "five axes", "repeats", "noise"],
)
def test_what_cannot_be_known_is_refused_in_one_line(array: np.ndarray, told: str) -> None:
    with pytest.raises(BadInput, match=told) as error:
        named(Stored(array), None, "k-space")
    assert str(error.value).startswith("k-space has shape")
    assert "\n" not in str(error.value)


def test_names_that_are_given_or_known_count() -> None:
    kspace = scan()
    assert named(Stored(kspace, NAMES), None) == (Stored(kspace, NAMES), [])
    given = named(Stored(kspace, NAMES), ("coil", "time", "x", "y"))[0]
    assert given.axes == ("coil", "time", "x", "y")
    assert named(Stored(kspace[:, None]), NAMES)[0].axes == ("slice", "one1", "coil", "y", "x"), (
        "axes of one are left out"
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("coil", "y", "x"), "has 4 axes, (3, 4, 48, 40): --axes names 3"),
        (("coil", "coil", "y", "x"), "--axes names coil twice"),
        (("slice", "coil", "z", "x"), "--axes must name an axis 'y'"),
        (("slice", "coil", "y", "z"), "--axes must name an axis 'x'"),
        (("one", "coil", "y", "x"), "--axes calls an axis of 3 'one'"),
        (("part", "coil", "y", "x"), "real and imaginary part has length two, not 3"),
    ],
)
def test_names_that_cannot_be_are_refused(given: tuple[str, ...], told: str) -> None:
    with pytest.raises(BadInput) as error:
        named(Stored(scan()), given)
    assert told in str(error.value)


def test_names_are_read_from_words() -> None:
    assert parsed("slice, Coil,y x") == NAMES
    for wrong in ("", "y", "y,1x", "y;x"):
        with pytest.raises(BadInput, match="--axes takes names as in slice,coil,y,x"):
            parsed(wrong)
