"""Coils on the way from a file: compression, whitening, and maps that are estimated or given."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pnpilot.errors import BadInput
from pnpilot.io.cfl import read_cfl, write_cfl
from pnpilot.io.raw import Stored
from pnpilot.io.readers import open_raw
from pnpilot.physics import Sense
from pnpilot.problems import open_problem
from pnpilot.recon.modalities.cartesian import Cartesian
from pnpilot.recon.options import Options
from pnpilot.recon.prepared import batch
from pnpilot.tasks._masks import build_mask
from tests.prepared_scans import (
    COIL_AXES,
    COILS,
    HEIGHT,
    UNUSED,
    WIDTH,
    apart,
    coils_of,
    grain,
    maps_of,
    needs_bart,
    object_of,
    scan,
    seen,
    wide,
)


def test_more_coils_than_sixteen_are_compressed_and_the_image_stays() -> None:
    kspace, maps = coils_of(0.002, 20), maps_of(20)
    given = scan(kspace, given=maps)[0]
    assert given.y.shape[0] == 16
    assert given.said["compression"][1].startswith("20 coils compressed to 16, with 99.")
    assert apart(seen(given), object_of()) < 0.03
    estimated = scan(kspace)[0]
    assert estimated.y.shape[0] == 16
    whole = scan(kspace, without={"compression"})[0]
    assert whole.y.shape[0] == 20
    assert whole.said["compression"] == (False, "switched off")
    inside = np.abs(object_of()) > 0.3
    assert apart(np.abs(seen(estimated))[inside], np.abs(seen(whole))[inside]) < 0.05
    assert "compression" not in scan(kspace[:16])[0].said


def uneven(strength: float) -> np.ndarray:
    """How the noise of coils is mixed, some of them `strength` times as noisy as others."""
    mix = np.eye(COILS) + 0.3 * grain(COILS, COILS, seed=3)
    return np.asarray(np.linspace(1, strength, COILS)[:, None] * mix)


@pytest.mark.parametrize("maps", [True, False])
def test_a_noise_scan_makes_noise_white_and_leaves_the_image(maps: bool) -> None:
    mix = uneven(1.5)
    noise = 0.01 * np.einsum("dc,chw->dhw", mix, grain(COILS, HEIGHT, WIDTH))
    scanned = (0.01 * mix @ grain(COILS, 2000, seed=1)).astype(np.complex64)
    kspace = (coils_of() + noise).astype(np.complex64)
    options: dict[str, Any] = {"given": maps_of()} if maps else {}
    image, plain = (scan(kspace, noise=scanned, without=without, **options)[0] for without in ((), ("whitening",)))
    assert image.said["whitening"] == (True, "noise of 4 coils whitened, as a noise scan shows it")
    assert plain.said["whitening"] == (False, "switched off")
    only = scan(noise.astype(np.complex64), noise=scanned, given=maps_of())[0].y.reshape(COILS, -1).numpy()
    covariance = only @ only.conj().T / (2 * only.shape[1])
    level = np.sqrt(np.diagonal(scanned @ scanned.conj().T).real.mean() / 4000)
    assert apart(covariance, level**2 * np.eye(COILS)) < 0.08
    inside = np.abs(object_of()) > 0.3
    error, before = (np.abs(np.abs(seen(found)) - np.abs(object_of()))[inside] for found in (image, plain))
    assert error.mean() < before.mean() < 0.05
    assert np.abs(seen(image))[inside].mean() == pytest.approx(np.abs(object_of())[inside].mean(), rel=0.01)
    apart_files = scan(kspace, scanned=scanned.T.copy().T, **options)[0]
    assert torch.equal(apart_files.y, image.y), "a noise scan may be a file of its own"


@pytest.mark.parametrize(("times", "taken"), [(1.0, True), (0.02, False), (30.0, False)])
def test_the_noise_level_is_that_of_a_scan_unless_the_data_speak_against_it(times: float, taken: bool) -> None:
    """Of a small, clean object the outermost samples show the object."""
    kspace = (coils_of() + 0.01 * grain(COILS, HEIGHT, WIDTH)).astype(np.complex64)
    scanned = (times * 0.01 * grain(COILS, 2000, seed=1)).astype(np.complex64)
    image = scan(kspace, noise=scanned, given=maps_of())[0]
    assert image.said["noise level"][0] is taken
    y, physics = batch([image, image])
    if taken:
        assert image.sigma == pytest.approx(0.01, rel=0.03)
        assert open_problem(y, physics).fidelity(open_problem(y, physics).x0()).max() > 0.5
        assert physics.noise_model.sigma.tolist() == pytest.approx([image.sigma] * 2)
    else:
        assert image.sigma is None
        assert "was it made in other units?" in image.said["noise level"][1]
        assert not hasattr(physics.noise_model, "sigma")


@pytest.mark.parametrize(("strength", "whitened"), [(1.0, False), (6.0, True)])
def test_without_a_noise_scan_only_coils_that_differ_much_are_whitened(strength: float, whitened: bool) -> None:
    mix = np.diag(np.linspace(1, strength, COILS))
    kspace = coils_of() + 0.01 * np.einsum("dc,chw->dhw", mix, grain(COILS, HEIGHT, WIDTH))
    image = scan(kspace.astype(np.complex64), given=maps_of())[0]
    assert image.said["whitening"][0] is whitened
    assert "the outermost samples show noise that differs by a factor of" in image.said["whitening"][1]
    assert scan(kspace.astype(np.complex64), given=maps_of(), always={"whitening"})[0].said["whitening"][0] is True
    assert apart(seen(image), object_of()) < 0.3


def test_data_without_noise_are_not_whitened() -> None:
    kspace = coils_of(coils=8)
    told = scan(kspace, given=maps_of(8))[0].said["whitening"]
    assert told[0] is False
    assert told[1].endswith("that is no noise but signal, or a coil that is dead")
    kspace[3] = 0
    assert scan(kspace, given=maps_of(8))[0].said["whitening"][1].startswith("no noise scan, and the outermost samples")


@pytest.mark.parametrize(
    ("scanned", "told"),
    [
        (grain(3, 900), "the noise scan has 3 coils, the data have 4"),
        (grain(4, 15), "a noise scan of .* is too short"),
        (grain(900, 4), "a noise scan of .* is too short"),
        (np.ones((4, 99), np.float32), "a noise scan holds complex numbers"),
        (grain(4, 99) * np.nan, "the noise scan holds NaN or infinite values"),
        (np.repeat(grain(1, 99), 4, 0), "the noise of the coils is not independent"),
        (np.zeros((4, 99), np.complex64), "a noise scan of .* is too short"),
    ],
    ids=["coils", "short", "turned", "real", "NaN", "copies", "zero"],
)
def test_noise_scans_that_do_not_fit_are_refused(scanned: np.ndarray, told: str) -> None:
    with pytest.raises(BadInput, match=told) as error:
        scan(coils_of(), noise=scanned)[0]
    assert "\n" not in str(error.value)


# Coil maps.


def test_maps_are_estimated_from_the_block_in_the_middle() -> None:
    mask = build_mask("calibrated", HEIGHT, WIDTH, 1.6, torch.Generator().manual_seed(0)).numpy()
    image = scan((coils_of(0.002) * mask).astype(np.complex64), without={"whitening"})[0]
    assert image.maps is not None
    assert image.calibration == "ESPIRiT from 20×20 samples in the middle"
    assert image.said["coil maps"] == (True, image.calibration)
    inside = np.abs(object_of()) > 0.1
    maps, true = image.maps[0].numpy(), maps_of()
    assert apart(np.abs(maps[:, inside]), np.abs(true[:, inside])) < 0.07
    agreement = np.abs((maps.conj() * true).sum(0))[inside]
    assert agreement.min() > 0.98
    separate = scan((coils_of(0.002) * mask).astype(np.complex64), calibration=Stored(coils_of(0.002), COIL_AXES))[0]
    assert separate.calibration == "ESPIRiT from a separate scan, 24×24 samples in the middle"


@needs_bart
def test_maps_are_those_of_bart(tmp_path: Path) -> None:
    kspace = coils_of(0.002, height=64, width=64)
    write_cfl(tmp_path / "kspace", kspace.transpose(1, 2, 0)[:, :, None])
    subprocess.run(["bart", "ecalib", "-m1", "-r24", "kspace", "maps"], cwd=tmp_path, check=True, capture_output=True)
    theirs = read_cfl(tmp_path / "maps").squeeze().transpose(2, 0, 1)
    image = scan(kspace, without={"whitening"})[0]
    assert image.maps is not None
    inside = (np.abs(object_of(64, 64)) > 0.1) & (np.abs(theirs).max(0) > 0)
    assert inside.mean() > 0.3
    difference = np.abs(np.abs(image.maps[0].numpy()) - np.abs(theirs))[:, inside]
    assert difference.max() < 0.06
    assert difference.mean() < 0.01


def test_maps_without_a_block_are_found_with_the_image() -> None:
    mask = build_mask("random", HEIGHT, WIDTH, 2.5, torch.Generator().manual_seed(0)).numpy()
    image = scan((coils_of(0.002) * mask).astype(np.complex64), without={"whitening"})[0]
    assert image.maps is not None
    assert image.calibration.startswith("JSENSE: ")
    assert image.calibration.endswith("samples in the middle are whole, too few for ESPIRiT")
    inside = np.abs(object_of()) > 0.1
    agreement = np.abs((image.maps[0].numpy().conj() * maps_of()).sum(0))[inside]
    assert agreement.min() > 0.98


def test_a_slice_of_noise_has_maps_all_the_same() -> None:
    image = scan(grain(COILS, HEIGHT, WIDTH))[0]
    assert "ESPIRiT does not explain the coils" in image.calibration
    assert image.maps is not None
    assert bool(torch.isfinite(image.maps).all())


def test_maps_that_are_given_are_taken_in_any_order() -> None:
    kspace, maps = coils_of(0.01), maps_of()
    want = torch.from_numpy(maps)[None]
    layouts: list[Any] = [maps, Stored(maps.transpose(2, 1, 0), ("x", "y", "coil")), maps[None]]
    for layout in layouts:
        image = scan(kspace, given=layout)[0]
        assert image.maps is not None
        assert torch.equal(image.maps, want)
        assert image.calibration == "maps that were given"
    # Programs that keep coils last do so in both files.
    image = scan(kspace.transpose(1, 2, 0), ("y", "x", "coil"), given=maps.transpose(1, 2, 0))[0]
    assert image.maps is not None
    assert torch.equal(image.maps, want)
    inside = scan(kspace, maps=maps)[0]
    assert inside.maps is not None
    assert torch.equal(inside.maps, want), "they may be in the same file"


@pytest.mark.parametrize("names", [None, ("slice", *COIL_AXES)])
def test_maps_may_differ_between_slices(names: tuple[str, ...] | None) -> None:
    maps = np.stack([np.roll(maps_of(), turn, 0) for turn in range(3)])
    kspace = np.stack([coils_of(0.01)] * 3)
    images = scan(kspace, ("slice", *COIL_AXES), given=Stored(maps, names))
    cine = scan(np.stack([kspace] * 2, 1), ("slice", "time", *COIL_AXES), given=Stored(maps, ("slice", *COIL_AXES)))
    for number in range(3):
        for image in (images[number], cine[3 + number]):
            assert image.maps is not None
            assert np.array_equal(image.maps[0].numpy(), maps[number])


@needs_bart
def test_two_sets_of_maps_as_bart_writes_them(tmp_path: Path) -> None:
    kspace = coils_of(0.002)
    for name, array in (("kspace", kspace), ("wide", wide()[0])):
        write_cfl(tmp_path / name, array.transpose(2, 1, 0)[:, :, None])  # the readout is the first axis
        subprocess.run(
            ["bart", "ecalib", "-m2", "-r20", "-c0.5", name, f"{name}_maps"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
    for name in ("kspace", "wide"):
        with (
            open_raw(tmp_path / f"{name}.cfl", UNUSED) as raw,
            open_raw(tmp_path / f"{name}_maps.cfl", UNUSED) as given,
        ):
            if name == "wide":
                raw.matrix, raw.oversampled = {"x": WIDTH}, "x"
            image = Cartesian(raw, Options(without=frozenset({"whitening"})), UNUSED, given, None)[0]
        theirs = read_cfl(tmp_path / f"{name}_maps").squeeze().transpose(3, 2, 0, 1)
        assert image.maps is not None
        assert np.array_equal(image.maps.numpy(), theirs if name == "kspace" else theirs[:, :, 20:60])
        assert image.maps.shape == (2, COILS, WIDTH, HEIGHT)
        assert isinstance(batch([image])[1], Sense)


@pytest.mark.parametrize(
    ("maps", "told"),
    [
        (maps_of(5), "image 0: the maps are of 5 coils, the data of 4"),
        (maps_of(height=50), "image 0: the maps have 50 pixels along y, k-space has 48 samples"),
        (maps_of()[0], r"coil maps have shape \(48, 40\)"),
        (Stored(np.stack([maps_of()] * 3), ("slice", *COIL_AXES)), "there are coil maps for 3 images, and 1 images"),
    ],
    ids=["coils", "size", "one", "slices"],
)
def test_maps_that_do_not_fit_are_refused(maps: Any, told: str) -> None:
    with pytest.raises(BadInput, match=told) as error:
        scan(coils_of(), given=maps)[0]
    assert "\n" not in str(error.value)
