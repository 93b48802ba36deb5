"""From what a file holds to data and physics: each step against what it stands for, and every refusal in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pnpilot.errors import BadInput, UnknownName
from pnpilot.io.raw import Stored
from pnpilot.physics import Sense
from pnpilot.recon.fourier import resized, to_image, to_kspace
from pnpilot.recon.options import Options, steps
from pnpilot.recon.oversampling import cropped_readout
from pnpilot.recon.partial_fourier import HELD
from pnpilot.recon.prepared import batch
from pnpilot.recon.sampling import calibration_block, lopsided, middle_part, sampled
from pnpilot.tasks._masks import MASKS, build_mask
from tests.prepared_scans import (
    COIL_AXES,
    COILS,
    HEIGHT,
    WIDTH,
    apart,
    coils_of,
    grain,
    maps_of,
    object_of,
    scan,
    seen,
    wide,
)

# Masks.


def test_samples_that_are_zero_in_all_coils_were_not_measured() -> None:
    mask = build_mask("random", HEIGHT, WIDTH, 3, torch.Generator().manual_seed(0)).numpy() > 0
    kspace = coils_of(0.01) * mask
    kspace[0, :, 3] = 0
    kspace[:, 5] *= 1e-8  # what rounding leaves of a zero
    mask[5] = False
    image = scan(kspace)[0]
    assert np.array_equal(image.mask.numpy() > 0, mask)
    assert np.array_equal(sampled(kspace), mask)
    assert image.said["mask"][1].startswith("samples that are zero count as not measured: 3")
    assert not (image.y.numpy() * ~mask).any()


LINES = np.arange(WIDTH) % 3 == 1


@pytest.mark.parametrize(
    "given",
    [
        LINES,
        LINES[None],
        np.tile(LINES, (HEIGHT, 1)),
        np.tile(LINES, (HEIGHT, 1)).T,
        np.tile(2.5 * LINES, (2, HEIGHT, 1)),
        Stored(np.tile(LINES, (HEIGHT, 1)).T, ("x", "y")),
        Stored(np.tile(LINES, (1, HEIGHT, 1)), ("coil", "y", "x")),
        Stored(np.tile(LINES, (1, HEIGHT, 1)), ("z", "y", "x")),
        Stored(np.tile(LINES, (2, HEIGHT, 1)), ("slice", "y", "x")),
        Stored(np.tile(LINES, (3, HEIGHT, 1)).transpose(1, 2, 0), ("y", "x", "time")),
    ],
    ids=["line", "row", "mask", "turned", "masks", "turned names", "coil", "thin", "slices", "times"],
)
def test_masks_are_laid_out_as_k_space(given: Any) -> None:
    kspace = np.stack([[coils_of(0.01)] * 2] * 3)
    measured = scan(kspace, ("time", "slice", *COIL_AXES), mask=given) if isinstance(given, Stored) else None
    measured = measured or scan(kspace[0], ("slice", *COIL_AXES), mask=given)
    image = measured[len(measured) - 1]
    assert np.array_equal(image.mask.numpy() > 0, np.tile(LINES, (HEIGHT, 1)))
    assert image.said["mask"][1] == "mask as given: 32.5 % of k-space measured"


def test_a_mask_that_belongs_to_an_axis_goes_with_it() -> None:
    """Names decide where sizes could not: the mask of a square, and one for each time."""
    kspace = np.tile(coils_of(0.01, height=40), (2, 3, 1, 1, 1))
    lines = np.tile(LINES, (40, 1))
    first = scan(kspace, ("slice", "time", *COIL_AXES), mask=Stored(lines.T, ("x", "y")))[0]
    assert np.array_equal(first.mask.numpy() > 0, lines)
    each = np.stack([np.roll(lines, time, 1) for time in range(3)])
    images = scan(kspace, ("slice", "time", *COIL_AXES), mask=Stored(each, ("time", "y", "x")))
    assert images.kspace.counting == ("time", "slice")
    assert all(np.array_equal(images[number].mask.numpy() > 0, each[number // 2]) for number in range(6))


# The block in the middle, and sides that are missing.


@settings(max_examples=80, deadline=None)
@given(
    mask=arrays.arrays(bool, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=st.booleans()),
    fill=st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
def test_the_calibration_block_is_the_largest(mask: np.ndarray, fill: tuple[int, int]) -> None:
    """Its smaller side is as large as that of any block can be, and none of its sides can grow."""
    middle_part(mask, *np.minimum(fill, mask.shape))[...] = True
    sizes = [(h, w) for h in range(1, mask.shape[0] + 1) for w in range(1, mask.shape[1] + 1)]
    whole = {size for size in sizes if middle_part(mask, *size).all()}
    height, width = calibration_block(mask)
    if not whole:
        assert (height, width) == (0, 0)
        return
    assert (height, width) in whole
    assert min(height, width) == max(map(min, whole))
    assert not whole & {(height + 1, width), (height, width + 1)}


@pytest.mark.parametrize("length", [64, 65])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("share", [0.625, 0.75, 0.5])
def test_partial_fourier_is_seen(length: int, axis: int, last: bool, share: float) -> None:
    lines = np.zeros(length, bool)
    count = round(share * length)
    lines[slice(length - count, None) if last else slice(count)] = True
    mask = np.tile(lines[:, None], (1, 40)) if axis == 0 else np.tile(lines, (40, 1))
    side = lopsided(mask)
    assert side is not None
    assert side.axis == axis
    middle = length // 2
    assert side.symmetric == max(0, min(middle - lines.nonzero()[0][0], lines.nonzero()[0][-1] - middle))
    assert side.share == pytest.approx(count / length)
    lines[::2] = lines[::2] & (np.abs(np.arange(length) - middle)[::2] < 6)
    undersampled = mask & (lines[:, None] if axis == 0 else lines)
    assert lopsided(undersampled) is not None, "also where every other line was left out"


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("size", [(48, 40), (64, 65), (160, 128)])
def test_masks_that_are_drawn_are_no_partial_fourier(kind: str, size: tuple[int, int]) -> None:
    for seed in range(25):
        for factor in (1, 2, 4, 8):
            mask = build_mask(kind, *size, factor, torch.Generator().manual_seed(seed)).numpy() > 0
            assert lopsided(mask) is None


def test_the_phase_constraint_of_partial_fourier() -> None:
    kspace = coils_of(0.001)
    kspace[:, 30:] = 0
    image = scan(kspace, given=maps_of())[0]
    assert image.held == HELD
    assert image.turn is not None
    assert image.said["phase"] == (
        True,
        "partial Fourier along y: 62 % of the range was measured; images are held to the phase of 10 symmetric samples",
    )
    inside = np.abs(object_of()) > 0.3
    left = np.angle(object_of() * image.turn[0].numpy().conj())[inside]
    assert np.abs(left).mean() < 0.1, "the phase is that of the object"
    y, physics = batch([image])
    assert isinstance(physics, Sense)
    assert y.shape == (1, COILS, HEIGHT, WIDTH)
    assert physics.held.tolist() == pytest.approx([HELD])
    alone = scan(kspace[0], ("y", "x"))[0]
    assert alone.maps is not None
    assert alone.maps.shape == (1, 1, HEIGHT, WIDTH)
    assert isinstance(batch([alone])[1], Sense)
    off = scan(kspace, given=maps_of(), without={"phase"})[0]
    assert off.turn is None
    assert off.held == 0
    assert off.said["phase"][0] is False
    kspace[:, 26:] = 0
    few = scan(kspace, given=maps_of())[0]
    assert few.said["phase"] == (
        False,
        "partial Fourier along y: 54 % of the range was measured; too little is measured "
        "whole around the middle to know the phase from",
    )
    assert few.turn is None


# Oversampling.


@pytest.mark.parametrize("length", [80, 81])
@pytest.mark.parametrize("wanted", [40, 41])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_readout_is_cut_in_the_image(length: int, wanted: int, axis: int) -> None:
    image = grain(2, *((length, 9) if axis == 0 else (9, length)))
    lines = np.arange(9) % 3 > 0
    mask = np.tile(lines, (length, 1)) if axis == 0 else np.tile(lines[:, None], (1, length))
    cut = cropped_readout(to_kspace(image) * mask, mask, axis, wanted)
    assert cut is not None
    first = length // 2 - wanted // 2
    middle = to_image(to_kspace(image) * mask).take(range(first, first + wanted), 1 + axis)
    assert apart(cut[0], to_kspace(middle)) < 1e-5
    assert np.array_equal(cut[1], np.tile(lines, (wanted, 1)) if axis == 0 else np.tile(lines[:, None], (1, wanted)))


OVERSAMPLED: dict[str, Any] = {"matrix": {"x": WIDTH}, "oversampled": "x"}


@pytest.mark.parametrize("order", [COIL_AXES, ("coil", "x", "y"), ("y", "x", "coil")])
def test_oversampling_is_removed_along_the_readout(order: tuple[str, ...]) -> None:
    kspace, maps = wide()
    arranged = kspace.transpose([COIL_AXES.index(name) for name in order])
    image = scan(arranged, order, **OVERSAMPLED, given=Stored(maps, COIL_AXES))[0]
    assert image.said["oversampling"] == (True, "readout oversampling removed: of 80 samples along x, 40 are kept")
    found = seen(image)
    assert apart(found.T if order[1:] == ("x", "y") else found, object_of()) < 0.08
    assert bool((image.mask == 1).all())


def test_maps_may_be_of_either_field_of_view() -> None:
    kspace, maps = wide()
    images = [scan(kspace, **OVERSAMPLED, given=given)[0] for given in (maps, maps_of())]
    assert images[0].maps is not None
    assert torch.equal(images[0].maps, torch.from_numpy(maps_of())[None])
    assert torch.equal(images[0].y, images[1].y)
    with pytest.raises(BadInput, match="the maps have 60 pixels along y, k-space has 48 samples"):
        scan(kspace, **OVERSAMPLED, given=np.ones((COILS, 60, 80), np.complex64))[0]
    with pytest.raises(BadInput, match="the maps have 80 pixels along x, k-space has 40 samples"):
        scan(coils_of(), given=maps)[0]


def test_an_asymmetric_echo_stays_asymmetric() -> None:
    kspace, maps = wide()
    kspace[..., :20] = 0
    image = scan(kspace, **OVERSAMPLED, given=maps)[0]
    columns = np.asarray(image.mask.numpy().all(0))
    assert not columns[:10].any()
    assert columns[10:].all()
    assert image.said["phase"][1].startswith("partial Fourier along x: 75 % of the range was measured")


def test_oversampling_stays_where_it_is_wanted_or_undersampled() -> None:
    kspace, maps = wide()
    kept = scan(kspace, **OVERSAMPLED, given=maps, without={"oversampling"})[0]
    assert kept.y.shape[-1] == 80
    assert kept.said["oversampling"] == (False, "switched off: of 80 samples along x, 40 are kept by default")
    radial = build_mask("radial", HEIGHT, 80, 3, torch.Generator()).numpy()
    image = scan(kspace * radial, **OVERSAMPLED, given=maps)[0]
    assert image.y.shape[-1] == 80
    assert image.said["oversampling"] == (False, "left as it is: k-space is undersampled along x")
    lines = np.tile(np.arange(80) % 4 != 1, (HEIGHT, 1))
    assert cropped_readout(kspace * lines, lines, 1, WIDTH) is None


# Volumes and averages.


@pytest.mark.parametrize("along", ["z", "y", "x"])
@pytest.mark.parametrize("order", [("coil", "z", "y", "x"), ("x", "y", "z", "coil")])
def test_an_axis_that_was_measured_whole_is_transformed_first(
    along: str, order: tuple[str, ...], tmp_path: Path
) -> None:
    """Every image is a plane of the volume in that direction."""
    names, sizes = ("coil", "z", "y", "x"), (2, 10, 24, 20)
    kspace = to_kspace(grain(*sizes), (1, 2, 3))
    others = [axis for axis in (1, 2, 3) if names[axis] != along]
    lines = np.random.default_rng(0).random([sizes[axis] for axis in others]) < 0.6
    kspace = kspace * np.expand_dims(lines, names.index(along) - 1)
    arranged = kspace.transpose([names.index(name) for name in order]).astype(np.complex64)
    images = scan(arranged, order, folder=tmp_path)
    length = sizes[names.index(along)]
    assert len(images) == length
    assert f"k-space along {along} was measured whole: it is transformed first" in images.notes[0]
    volume = to_image(kspace, (1, 2, 3))
    for number in (0, length // 2, length - 1):
        wanted = volume.take(number, names.index(along))
        found = to_image(images.kspace[number][0])
        assert apart(found if order[0] == "coil" else found.swapaxes(1, 2), wanted) < 1e-5


def test_of_an_oversampled_axis_the_middle_is_kept(tmp_path: Path) -> None:
    kspace = to_kspace(grain(1, 12, 24, 32), (1, 2, 3)) * (np.arange(24) % 4 > 0)[:, None]
    kspace[:, 3] = 0
    others: dict[str, Any] = {"folder": tmp_path, "matrix": {"x": 16}, "oversampled": "x"}
    axes = ("coil", "z", "y", "x")
    cut, whole = scan(kspace, axes, **others), scan(kspace, axes, **others, without={"oversampling"})
    assert (len(cut), len(whole)) == (16, 32)
    assert "each of the 16 in the middle of its 32 is an image" in cut.notes[0]
    assert np.array_equal(cut.kspace[0], whole.kspace[8])


def test_what_has_gaps_is_not_transformed_first(tmp_path: Path) -> None:
    """However few they are; and an axis that was measured on one side only if there is no better one."""
    kspace = grain(2, 16, 20, 24)
    kspace[:, [2, 5, 9]] = 0
    axes = ("coil", "z", "y", "x")
    assert "along y was measured whole" in scan(kspace, axes, folder=tmp_path).notes[0]
    kspace[..., :6] = 0
    kspace[:, :, [3, 9]] = 0
    assert "along x was measured along 75 % of its range, without gaps" in scan(kspace, axes, folder=tmp_path).notes[0]
    for holes in (np.s_[..., 9], np.s_[:, 8, 8, 8]):
        kspace[holes] = 0
    with pytest.raises(
        BadInput, match="all three axes of k-space are undersampled: one of them must be measured whole"
    ):
        scan(kspace, axes, folder=tmp_path)


def test_the_calibration_of_a_volume_is_cut_as_the_volume(tmp_path: Path) -> None:
    """Though it was measured whole along other axes."""
    kspace = grain(2, 16, 20, 24) * (np.random.default_rng(0).random((16, 20, 1)) < 0.4)
    calibration = np.zeros_like(kspace)
    calibration[:, 3:13] = grain(2, 10, 20, 24, seed=1)
    axes = ("coil", "z", "y", "x")
    images = scan(kspace, axes, folder=tmp_path, calibration=Stored(calibration, axes))
    assert images.calibration is not None
    assert images.calibration.plane == images.kspace.plane == ("z", "y")
    assert apart(images.calibration[7][0], to_image(calibration, (3,))[..., 7]) < 1e-5


def test_averages_count_where_they_were_measured() -> None:
    kspace = coils_of()
    repeats = np.stack([kspace + 0.01 * grain(*kspace.shape, seed=seed) for seed in range(3)])
    repeats[2, :, 30:] = 0  # the last was cut short
    found = scan(repeats, ("average", *COIL_AXES)).kspace[0][0]
    assert apart(found[:, :30], repeats.mean(0)[:, :30]) < 1e-6
    assert apart(found[:, 30:], repeats[:2].mean(0)[:, 30:]) < 1e-6
    parts = np.stack([repeats.real, repeats.imag], -1)
    again = scan(parts, ("average", *COIL_AXES, "part")).kspace[0][0]
    assert apart(again, found) < 1e-6


# What comes out, and what is refused.


def test_images_of_one_kind_are_a_batch() -> None:
    kspace = np.stack([coils_of(0.01), coils_of(0.01)])
    kspace[1, :, :, ::3] = 0
    images = scan(kspace, ("slice", *COIL_AXES), given=maps_of())
    y, physics = batch([images[0], images[1]])
    assert images[0].kind == images[1].kind
    assert y.shape == (2, COILS, HEIGHT, WIDTH)
    assert [float(mask.mean()) for mask in physics.mask] == pytest.approx([1, 26 / 40])
    alone = scan(kspace[:, 0], ("slice", "y", "x"))
    assert alone[0].maps is None
    assert type(batch([alone[0], alone[1]])[1]).__name__ == "MRI"
    assert alone[0].kind != images[0].kind


def test_a_slice_without_a_sample_is_empty() -> None:
    kspace = np.stack([coils_of(0.01), 0 * coils_of()])
    images = scan(kspace, ("slice", *COIL_AXES))
    assert not images[0].empty
    assert images[1].empty
    assert images[1].said == {"mask": (True, "samples that are zero count as not measured: 0 % of k-space measured")}


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused_with_its_image(value: float, tmp_path: Path) -> None:
    kspace = np.stack([coils_of(0.01)] * 2)
    kspace[1, 2, 7, 7] = value
    images = scan(kspace, ("slice", *COIL_AXES))
    assert images[0].number == 0
    with pytest.raises(BadInput, match=r"^image 1: k-space holds NaN or infinite values$"):
        images[1]


def test_a_calibration_scan_that_is_not_finite_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^image 0: the calibration scan holds NaN or infinite values$"):
        scan(coils_of(0.01), calibration=Stored(coils_of() * np.nan, COIL_AXES))[0]


@pytest.mark.parametrize(
    ("axes", "others", "told"),
    [
        (("slice", "y", "x"), {"mask": np.ones((3, 3))}, r"a mask of \(3, 3\) does not fit 4 images of 48×40 samples"),
        (COIL_AXES, {"mask": np.ones((2, 48, 40))}, r"a mask of \(2, 48, 40\) does not fit 1 images of 48×40"),
        (COIL_AXES, {"mask": Stored(np.ones((48, 48)), ("y", "x"))}, r"a mask of \(48, 48\) does not fit"),
        (COIL_AXES, {"mask": Stored(np.ones((2, 48, 40)), ("slice", "y", "x"))}, "does not fit 1 images"),
        (COIL_AXES, {"mask": Stored(np.ones((2, 48, 40)), ("z", "y", "x"))}, "does not fit 1 images"),
        (("set", "y", "x"), {}, "only coil maps come in sets"),
        (("coil", "slice", "x"), {}, "an image has two axes of space, not x"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(axes: tuple[str, ...], others: Any, told: str) -> None:
    with pytest.raises(BadInput, match=told) as error:
        scan(coils_of(), axes, **others)
    assert "\n" not in str(error.value)


def test_steps_are_known_by_their_names() -> None:
    with pytest.raises(UnknownName, match=r"unknown step 'whiten'; known: .*whitening"):
        Options(without=frozenset({"whiten"}))
    with pytest.raises(BadInput, match="crop is done wherever there is a reason for it: only whitening"):
        Options(always=frozenset({"crop"}))
    kspace = coils_of(0.01)
    for step in steps():
        for how in ("without", "always") if step == "whitening" else ("without",):
            others: dict[str, Any] = {"given": maps_of(), how: {step}}
            assert apart(seen(scan(kspace, **others)[0]), object_of()) < 0.2, f"{how} {step} changes what is seen"


def test_a_third_of_an_image_is_its_middle() -> None:
    image = np.arange(48.0).reshape(6, 8)
    assert np.array_equal(resized(image, (2, 3)), image[2:4, 3:6])
    assert resized(image, (9, 8)) is image
