"""Blurred pictures from their files to files: noise, borders, colours, depth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from pnpilot import PnPilot
from pnpilot.denoisers import Denoiser
from pnpilot.errors import BadInput
from pnpilot.io.raw import Raw, Scratch, Stored
from pnpilot.policies.schedules import Schedule
from pnpilot.problems import open_problem
from pnpilot.problems.photons import PhotonLimited
from pnpilot.recon import Options, Outcome, batch, reconstruct_file
from pnpilot.recon.modalities._picture import noise_of_pixels
from pnpilot.recon.modalities.photograph import Photograph
from pnpilot.solvers import build_solver

tifffile, convolve = pytest.importorskip("tifffile"), pytest.importorskip("scipy.signal").fftconvolve
KERNEL = np.pad(np.outer([1, 3, 4, 2, 1], [1, 1, 2, 1, 1]) / 66.0, ((4, 2), (3, 1)))
"""Not in the middle of its file."""
REACH = 2


def scene(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Patches of constant brightness in three colours (height, width, 3), in [0, 1], bright up to the border."""
    rng = np.random.default_rng(seed)
    coarse = rng.uniform(0.1, 1, (-(-height // 8), -(-width // 8), 3))
    return coarse.repeat(8, 0).repeat(8, 1)[:height, :width]


def blurred(truth: np.ndarray) -> np.ndarray:
    core = KERNEL[4:-2, 3:-1]
    return np.stack([convolve(colour, core, "valid") for colour in np.moveaxis(truth, -1, 0)], -1)


@pytest.fixture
def model(smoother: Denoiser) -> PnPilot:
    return PnPilot(smoother, policy=Schedule(build_solver("admm", frozenset({"prox", "grad", "linear"})), 10))


@pytest.fixture
def psf(tmp_path: Path) -> Path:
    tifffile.imwrite(tmp_path / "psf.tif", (1000 * KERNEL).astype(np.float32))
    return tmp_path / "psf.tif"


def done(file: Path, model: PnPilot, psf: Path, **others: Any) -> Outcome:
    options = Options(psf=psf, **others)
    outcome = reconstruct_file(file, file.parent / "out", options=options, model=model, again=True)
    assert outcome.report is not None
    return outcome


def level_of(y: np.ndarray, step: float = 1.0) -> tuple[Any, str]:
    noise, said = noise_of_pixels(torch.from_numpy(np.moveaxis(y, -1, 0).copy()).float(), step)
    ((_, sentence),) = said.values()
    return noise, sentence


@pytest.mark.parametrize("sigma", [0, 2, 8])
def test_noise_that_is_the_same_everywhere_is_found(sigma: int) -> None:
    clean = 255 * blurred(scene(150, 160))
    noisy = clean + sigma * np.random.default_rng(1).standard_normal(clean.shape)
    noise, said = level_of(noisy.round())
    assert noise.gain == noise.black == 0 and "the same everywhere" in said
    assert noise.sigma == pytest.approx((sigma**2 + 1 / 12) ** 0.5, rel=0.15)


@pytest.mark.parametrize("black", [0, 100])
@pytest.mark.parametrize("counts", [30, 500])
def test_noise_of_photons_is_found_whatever_the_camera_adds(counts: int, black: int) -> None:
    rng = np.random.default_rng(2)
    clean = blurred(scene(150, 160) * np.linspace(0.05, 1, 160)[:, None])
    stored = (black + rng.poisson(counts * clean) + 1.5 * rng.standard_normal(clean.shape)).round()
    noise, said = level_of(stored)
    assert noise.gain == pytest.approx(1, rel=0.15) and "as that of photons" in said
    # What counts is the variance, which read noise and the number that is added share.
    for bright in (0.2, 0.8):
        variance = noise.gain * (black + counts * bright - noise.black) + noise.sigma**2
        assert variance == pytest.approx(counts * bright + 1.5**2, rel=0.2)


def test_noise_that_was_cut_off_at_black_is_not_that_of_photons() -> None:
    clean = 255 * blurred(scene(150, 160) * (np.arange(160) > 40)[:, None])
    noisy = (clean + 8 * np.random.default_rng(1).standard_normal(clean.shape)).round().clip(0, 255)
    noise, _ = level_of(noisy)
    assert noise.gain == 0 and noise.sigma == pytest.approx(8, rel=0.2)
    # The same in counts: dark parts are zero.
    counts, said = level_of(np.random.default_rng(1).poisson(clean.clip(0) / 10).astype(float))
    assert counts.gain == pytest.approx(1, rel=0.15) and "as that of photons" in said


def test_pictures_too_small_or_flat_to_tell_have_the_noise_of_rounding() -> None:
    for y in (np.full((64, 64, 1), 7.0), np.full((16, 16, 3), 9.0)):
        assert level_of(y)[0].sigma == pytest.approx(12**-0.5)


def test_colour_at_16_bits_stays_so_and_borders_are_no_worse(tmp_path: Path, model: PnPilot, psf: Path) -> None:
    truth = np.stack([scene(52, 44, seed) for seed in (0, 1)])
    y = np.stack([blurred(one) for one in truth])
    stored = (40000 * y + 300 * np.random.default_rng(0).standard_normal(y.shape)).round().astype(np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", stored, photometric="rgb", resolution=(5, 5), resolutionunit=3)
    outcome = done(tmp_path / "a.tif", model, psf)
    assert [path.name for path in outcome.written] == ["a.tif", "a.json", "a.html"]
    with tifffile.TiffFile(outcome.written[0]) as file:
        found, resolution = file.asarray(), file.pages[0].resolution
    assert found.shape == stored.shape and found.dtype == np.uint16 and resolution == (5, 5)
    error, before = (np.square(array / 40000 - truth[:, REACH:-REACH, REACH:-REACH]) for array in (found, stored))
    inside = np.zeros(error.shape[1:3], bool)
    inside[REACH:-REACH, REACH:-REACH] = True
    for part in (inside, ~inside):
        assert error[:, part].mean() < 0.5 * before[:, part].mean()
    assert outcome.report is not None
    notes = outcome.report["read"]["notes"]
    assert "pixel (6, 5), counts as its centre" in notes[0]
    assert notes[1] == "the point-spread function reaches 2 rows and 2 columns"
    assert outcome.report["read"]["axes"] == {"slice": 2, "y": 48, "x": 40, "colour": 3}
    page = (tmp_path / "out/a.html").read_text()
    assert page.count("data:image/png;base64,") == 3, "two images, and the curves"


def test_a_picture_of_8_bits_stays_a_picture(tmp_path: Path, model: PnPilot, psf: Path) -> None:
    y = (200 * blurred(scene(40, 44))).round().astype(np.uint8)
    Image.fromarray(y).save(tmp_path / "a.png")
    with Image.open(done(tmp_path / "a.png", model, psf).written[0]) as file:
        found = np.asarray(file)
    assert found.shape == y.shape
    assert np.abs(found.mean((0, 1)) - y.mean((0, 1))).max() < 2, "its brightness is kept"
    grey = y[..., 0]
    np.save(tmp_path / "a.npy", grey.astype(np.float64))
    outcome = done(tmp_path / "a.npy", model, psf)
    found = np.load(outcome.written[0])
    assert found.shape == grey.shape and found.dtype == np.float32


def test_pictures_of_photons_are_weighted_unless_asked(tmp_path: Path, psf: Path) -> None:
    rng = np.random.default_rng(0)
    y = (100 + rng.poisson(400 * blurred(scene(100, 90)))).astype(np.uint16)
    kernel = Stored(tifffile.imread(psf), ("y", "x"))

    def opened(**others: Any) -> Any:
        raw = Raw(Stored(np.stack([y, y[::-1]]), ("slice", "y", "x", "colour")), "tiff", pictures=True)
        raw.beside["psf"] = kernel
        scan = Photograph(raw, Options(psf=psf, **others), Scratch(tmp_path))
        images = [scan[0], scan[1]]
        assert images[0].kind == images[1].kind
        return images, open_problem(*batch(images))

    images, problem = opened()
    assert isinstance(problem, PhotonLimited)
    assert all(image.noise.gain == pytest.approx(1, rel=0.2) for image in images)
    assert 60 < images[0].noise.black < 105
    assert np.allclose(images[0].finished(torch.zeros(3, 4, 4)), images[0].noise.black)
    _, plain = opened(without=frozenset({"photons"}))
    assert not isinstance(plain, PhotonLimited)


def test_black_pages_stay_black_and_flat_ones_flat(tmp_path: Path, model: PnPilot, psf: Path) -> None:
    stack = np.stack([np.zeros((20, 24), np.uint8), np.full((20, 24), 9, np.uint8)])
    tifffile.imwrite(tmp_path / "a.tif", stack)
    assert np.array_equal(tifffile.imread(done(tmp_path / "a.tif", model, psf).written[0]), stack)


GREY = (200 * blurred(scene(40, 44))[..., 0]).astype(np.float32)
REFUSED: dict[str, tuple[np.ndarray, np.ndarray, str]] = {
    "a pixel": (GREY[:1, :1], KERNEL, r"picture.tif: its sides are \(1, 1\): pictures have at least 16 pixels"),
    "NaN": (np.where(GREY > 100, np.nan, GREY), KERNEL, "picture.tif: image 0: it holds NaN"),
    "all black": (0 * GREY, KERNEL, "zero everywhere: there is nothing"),
    "nothing": (GREY, 0 * KERNEL, "psf.tif: the point-spread function is zero everywhere"),
    "larger": (GREY, np.ones((51, 9)), "spreads light over 51×9 pixels, and the picture has 36×40"),
    "colours": (GREY, scene(9, 9), "psf.tif: the point-spread function is in colour, and the picture in shades"),
    "a stack": (GREY, np.stack([KERNEL] * 2), r"has shape \(2, 11, 9\): it must be one picture"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_right_is_told_in_a_line(name: str, tmp_path: Path, model: PnPilot) -> None:
    picture, kernel, told = REFUSED[name]
    tifffile.imwrite(tmp_path / "picture.tif", picture)
    tifffile.imwrite(
        tmp_path / "psf.tif", kernel.astype(np.float32), photometric="rgb" if name == "colours" else "minisblack"
    )
    with pytest.raises(BadInput, match=told) as caught:
        done(tmp_path / "picture.tif", model, tmp_path / "psf.tif")
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "out").iterdir())


def test_a_measurement_has_no_point_spread_function(tmp_path: Path, model: PnPilot, psf: Path) -> None:
    np.save(tmp_path / "a.npy", GREY.astype(np.complex64))
    with pytest.raises(BadInput, match="--psf says nothing about what it holds"):
        done(tmp_path / "a.npy", model, psf)
