"""Files of coded diffraction: found by the names of their arrays, read by what fits, and reconstructed as they are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.denoisers import Denoiser
from pnpilot.errors import BadInput
from pnpilot.io.raw import Raw, Scratch, Stored
from pnpilot.io.readers import open_raw
from pnpilot.physics import CodedDiffraction, ShotNoise
from pnpilot.recon import Options, reconstruct_file
from pnpilot.recon.modalities import Modality, understood
from pnpilot.recon.modalities._pattern import Patterns, left_over, read
from pnpilot.recon.modalities.diffraction import in_units
from tests.conftest import phantom

FILES = Path(__file__).parent / "files"


def masks(count: int = 4, height: int = 24, width: int = 24, seed: int = 0) -> Tensor:
    turns = torch.rand(count, height, width, generator=torch.Generator().manual_seed(seed))
    return torch.polar(torch.ones_like(turns), 2 * math.pi * turns)


def patterns(truth: Tensor, behind: Tensor, alpha: float = 0.0) -> Tensor:
    return CodedDiffraction(behind, ShotNoise(alpha, rng=torch.Generator().manual_seed(1)))(truth)


def opened(tmp_path: Path, name: str = "d.npz", options: Options | None = None, **arrays: Any) -> Any:
    np.savez(tmp_path / name, **arrays)
    raw = open_raw(tmp_path / name, Scratch(tmp_path))
    return understood(raw, options or Options(), Scratch(tmp_path))


def image_of(scan: Modality, number: int) -> Patterns:
    image = scan[number]
    assert isinstance(image, Patterns)
    return image


@pytest.mark.parametrize("suffix", ["npz", "mat", "h5"])
def test_files_of_all_formats_give_the_same_amplitudes(suffix: str, tmp_path: Path) -> None:
    with np.load(FILES / "diffraction.npz") as known:
        amplitudes, phases = known["amplitudes"], known["masks"]
    with open_raw(FILES / f"diffraction.{suffix}", Scratch(tmp_path)) as raw:
        assert raw.kind == "diffraction"
        scan = understood(raw, Options(), Scratch(tmp_path))
        assert (len(scan), scan.sizes) == (1 if suffix == "h5" else 2, (16, 12))
        image = image_of(scan, len(scan) - 1)
        scale = 255.0 if suffix == "mat" else 1.0
        assert np.allclose(image.y, scale * amplitudes[len(scan) - 1], atol=1e-3 * scale)
        assert np.allclose(image.masks, phases, atol=1e-4)
        assert image.alpha == {"npz": 9.0, "mat": 9.0 * 255, "h5": None}[suffix]


@pytest.mark.parametrize("alpha", [0, 81])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("quantity", ["amplitudes", "intensities"])
def test_what_the_numbers_are_shows_whatever_the_noise(alpha: float, centred: bool, quantity: str) -> None:
    behind = masks()
    y = 7 * patterns(phantom(24, 24, 1), behind, alpha)[0]
    numbers = y if quantity == "amplitudes" else y.square()
    shown = torch.fft.fftshift(numbers, dim=(-2, -1)) if centred else numbers
    for told in (None, quantity):
        reading = read(shown, behind, told)
        assert (reading.quantity, reading.centred) == (quantity, centred)
        assert torch.allclose(reading.amplitudes(shown), y, rtol=1e-4)
        assert "nothing explains" not in reading.told


def test_patterns_of_other_masks_are_told() -> None:
    y = patterns(phantom(24, 24, 1), masks(seed=1))[0]
    assert "do they belong to these masks" in read(y, masks(seed=2), "amplitudes").told
    assert left_over(y, masks(seed=1)) < 0.05 < 0.5 < left_over(y, masks(seed=2))


def test_intensities_below_zero_are_no_amplitudes() -> None:
    y = patterns(phantom(24, 24, 1), masks())[0].square() - 0.01
    assert read(y, masks(), None).quantity == "intensities"


def test_noise_is_told_in_the_units_of_the_file() -> None:
    assert in_units(27, 0.9)[0] == 27
    assert in_units(27, 0.9 * 255)[0] == 27 * 255
    alpha, told = in_units(27, 4e6)
    assert alpha == 27 * 4e6
    assert "taken for 255" in told


def test_a_file_gives_what_the_model_gives(tmp_path: Path, smoother: Denoiser) -> None:
    """Of an image that no light came from, nothing."""
    behind, truth = masks(), phantom(24, 24)
    y = 255 * patterns(truth, behind, 9)
    dark = torch.cat([torch.zeros_like(y[:1]), y])
    np.savez(tmp_path / "d.npz", y=dark.numpy(), masks=behind.numpy(), alpha=np.array([9.0]))
    model = PnPilot(smoother)
    found = np.load(reconstruct_file(tmp_path / "d.npz", tmp_path / "out", model=model).written[0])
    assert (found.dtype, found.shape) == (np.float32, (3, 24, 24))
    assert not found[0].any()
    direct = model(y, CodedDiffraction(behind, ShotNoise(9 * 255))).real[:, 0].numpy()
    assert np.abs(found[1:] - direct).max() < 1e-3 * 255
    assert np.abs(found[1:] - 255 * truth[:, 0].numpy()).mean() < 0.05 * 255


@pytest.mark.parametrize("kind", ["complex", "real"])
def test_masks_may_come_in_a_file_of_their_own(kind: str, tmp_path: Path) -> None:
    y, behind = patterns(phantom(24, 24, 1), masks())[0], masks()
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "m.npy", behind if kind == "complex" else behind.angle())
    raw = open_raw(tmp_path / "y.npy", Scratch(tmp_path))
    brought = open_raw(tmp_path / "m.npy", Scratch(tmp_path))
    raw.mask = brought.mask or brought.measured
    scan = understood(raw, Options(mask=tmp_path / "m.npy"), Scratch(tmp_path))
    assert (scan.name, len(scan), scan.shape) == ("diffraction", 1, ())
    assert torch.allclose(image_of(scan, 0).y, y)
    assert torch.allclose(image_of(scan, 0).masks, behind, atol=1e-5)
    assert ("radians" in scan.notes[0]) == (kind == "real")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"masks": 0.5 * masks().numpy()}, r"moduli from 0.5 to 0.5: they must be one everywhere"),
        ({"masks": (masks().angle() > 0).float().numpy()}, "masks are of zeros and ones"),
        ({"masks": np.full((4, 24, 24), np.nan, np.complex64)}, "masks hold NaN"),
        ({"amplitudes": np.full((4, 24, 24), np.inf)}, "patterns hold NaN or infinite"),
        ({"amplitudes": np.zeros((4, 24, 24))}, "zero everywhere"),
        ({"alpha": -1.0}, "alpha is"),
        ({"alpha": np.ones(3)}, "alpha is"),
    ],
)
def test_what_cannot_be_right_is_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    content = {"amplitudes": patterns(phantom(24, 24, 1), masks())[0].numpy(), "masks": masks().numpy()}
    with pytest.raises(BadInput, match=message):
        opened(tmp_path, **content | change)


def test_negative_amplitudes_by_name_are_refused(tmp_path: Path) -> None:
    y = patterns(phantom(24, 24, 1), masks())[0].numpy()
    with pytest.raises(BadInput, match="called amplitudes, and some are negative"):
        opened(tmp_path, amplitudes=y - 0.1, masks=masks().numpy())


def test_patterns_that_do_not_go_with_their_masks_are_refused(tmp_path: Path) -> None:
    y = patterns(phantom(24, 24, 1), masks())[0].numpy()
    np.save(tmp_path / "y.npy", y[:3])
    np.save(tmp_path / "m.npy", masks().numpy())
    with pytest.raises(BadInput, match="do not go with masks of shape"):
        reconstruct_file(tmp_path / "y.npy", tmp_path / "out", options=Options(mask=tmp_path / "m.npy"))


def test_sampling_masks_are_no_phase_masks(tmp_path: Path) -> None:
    """K-space with masks of its own is k-space."""
    kspace = np.ones((4, 24, 24), np.complex64)
    np.savez(tmp_path / "k.npz", data=kspace, masks=np.ones((4, 24, 24), np.float32))
    with open_raw(tmp_path / "k.npz", Scratch(tmp_path)) as raw:
        assert raw.kind == "cartesian"
    np.savez(tmp_path / "s.npz", data=np.ones((4, 24, 24)), masks=np.ones((4, 24, 24), bool))
    with open_raw(tmp_path / "s.npz", Scratch(tmp_path)) as raw:
        assert raw.kind == "cartesian"


def test_axes_can_be_named(tmp_path: Path) -> None:
    y = patterns(phantom(24, 24), masks())[:, :, :, :].numpy()
    raw = Raw(Stored(y.transpose(1, 0, 3, 2)), "numpy", kind="diffraction", beside={"masks": Stored(masks().numpy())})
    scan = understood(raw, Options(axes="mask,time,x,y"), Scratch(tmp_path))
    assert (scan.counting, scan.shape) == (("time",), (2,))
    assert np.allclose(image_of(scan, 1).y, y[1], atol=1e-5)
