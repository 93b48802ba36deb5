"""`bench scan`: a scan of several coils, undersampled afterwards, by ours and by other programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from deepinv.physics import MRI, MultiCoilMRI
from torch import Tensor

from pnpilot.baselines import BASELINES, build_baseline
from pnpilot.baselines._sense import Sense
from pnpilot.benchmark.results import Results
from pnpilot.benchmark.scan import Scan, centred_fft2, combined, estimated_maps, head_of
from pnpilot.benchmark.scan_comparison import COARSE, FINE, ScanComparison, known_methods, search
from pnpilot.errors import BadInput, Incompatible, UnknownName
from pnpilot.problems._kspace import centred_ifft2
from pnpilot.tasks.multi_coil import simulated_maps
from tests.cli import Said
from tests.conftest import phantom
from tests.contracts import assert_close

HEIGHT, WIDTH, COILS = 48, 40, 4
PROGRAMS = [name for name in BASELINES if issubclass(BASELINES[name], Sense)]


def picture() -> Tensor:
    """A slice (H, W) with a phase, and air around it."""
    rows, columns = torch.linspace(-1, 1, HEIGHT)[:, None], torch.linspace(-1, 1, WIDTH)
    inside = (rows.square() + columns.square() < 0.7).float()
    return torch.polar(3 * inside * phantom(HEIGHT, WIDTH, 1)[0, 0], 0.5 + rows - 0.8 * columns)


def scan_of(noise: float = 0.0) -> Scan:
    generator = torch.Generator().manual_seed(0)
    maps = simulated_maps(COILS, HEIGHT, WIDTH, generator)
    grain = torch.randn(COILS, HEIGHT, WIDTH, dtype=torch.complex64, generator=generator)
    return Scan(centred_fft2(maps * picture()) + noise * grain, maps)


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, Path]:
    """K-space and maps as NumPy files."""
    scan = scan_of(noise=0.02)
    files = tmp_path / "scan.npy", tmp_path / "maps.npy"
    for path, array in zip(files, (scan.kspace, scan.maps), strict=True):
        np.save(path, array.numpy())
    return files


def test_the_truth_is_what_the_maps_combine_the_data_to() -> None:
    scan = scan_of()
    magnitude = picture().abs()
    assert_close(combined(scan.kspace, scan.maps), picture(), 1e-5)
    assert_close(scan.truth[0, 0], magnitude / magnitude.max())
    assert scan.peak == pytest.approx(magnitude.max().item(), rel=1e-5)
    exact = torch.stack([picture().real, picture().imag])[None]
    assert scan.scored(exact)["psnr"] > 100
    assert scan.scored(exact)["ssim"] == pytest.approx(1, abs=1e-4)
    outside = exact + 3 * (~scan.head)
    assert scan.scored(outside)["psnr"] > 100, "what lies outside the head does not count"
    assert scan.scored(1.1 * exact)["psnr"] < 40


@pytest.mark.parametrize("label", ["radial x4", "calibrated x1.5", "cartesian x3", "random x6"])
def test_the_data_of_a_setting_are_the_samples_of_the_scan(label: str) -> None:
    scan = scan_of()
    y, physics, kept = scan.measure(label, seed=1)
    assert isinstance(physics, MultiCoilMRI)
    mask = physics.mask[0, 0]
    assert kept == pytest.approx(mask.mean().item())
    assert_close(torch.complex(y[0, 0], y[0, 1]), mask * scan.kspace)
    assert_close(physics.A(torch.stack([picture().real, picture().imag])[None]), y, 1e-4)
    assert torch.equal(scan.measure(label, seed=1)[0], y)
    if not label.startswith("radial"):
        assert not torch.equal(scan.measure(label, seed=2)[0], y)


def test_the_head_has_no_holes_and_no_air() -> None:
    rows, columns = torch.linspace(-1, 1, 80)[:, None], torch.linspace(-1, 1, 90)
    radius = (rows.square() + columns.square()).sqrt()
    ring = ((radius < 0.7) & (radius > 0.3)).float()
    head = head_of(ring[None, None])
    assert head[radius < 0.7].all()
    assert not head[radius > 0.85].any()


def test_a_single_coil_is_single_coil_mri_in_the_same_head() -> None:
    scan = scan_of()
    for which, image in (("combined", picture()), ("2", scan.maps[2] * picture())):
        single = scan.one_coil(which)
        y, physics, _ = single.measure("radial x4", 0)
        assert isinstance(physics, MRI)
        assert y.shape == (1, 2, HEIGHT, WIDTH)
        assert torch.equal(single.head, scan.head)
        assert single.truth[..., single.head].max() == pytest.approx(1, abs=1e-5)
        assert single.scored(torch.stack([image.real, image.imag])[None])["psnr"] > 90
    for wrong in ("4", "all", "-1"):
        with pytest.raises(BadInput, match=rf"the coil must be 'combined' or a number below 4, got '{wrong}'"):
            scan.one_coil(wrong)


def test_what_is_no_full_scan_is_refused() -> None:
    scan = scan_of()
    holes = scan.kspace.clone()
    holes[:, ::2] = 0
    with pytest.raises(BadInput, match="50 % of k-space is zero: a fully sampled scan is needed, as the truth"):
        Scan(holes, scan.maps)
    with pytest.raises(BadInput, match=r"the maps are \(3, 48, 40\): they must agree"):
        Scan(scan.kspace, scan.maps[:3])
    hot = centred_ifft2(scan.kspace)
    hot[:, 3, 3] = 1e3
    with pytest.raises(BadInput, match="no head is found: single pixels outshine the whole image"):
        Scan(centred_fft2(hot), torch.ones_like(hot))
    for label in ("radial", "radial 4", "x4"):
        with pytest.raises(UnknownName, match=f"unknown setting '{label}'; known: 'calibrated x2'"):
            scan.measure(label, 0)
    with pytest.raises(UnknownName, match="known: radial, cartesian, calibrated, random"):
        scan.measure("spiral x4", 0)


def test_maps_of_sigpy_have_norm_one_in_the_head_and_combine_to_the_picture() -> None:
    scan = scan_of(noise=0.005)
    maps = estimated_maps(scan.kspace)
    inside = picture().abs() > 0.3
    assert (maps.abs().square().sum(0).sqrt()[inside] - 1).abs().max() < 1e-3
    found = combined(scan.kspace, maps).abs()
    assert ((found - picture().abs())[inside].abs() < 0.1).all()


@pytest.mark.parametrize("best", [3e-4, 1.1e-3, 2e-2])
def test_the_search_ends_near_the_best_weight(best: float) -> None:
    def score(weight: float) -> float:
        return -abs(np.log(weight / best))

    tried = list(search((3e-4, 3e-2), score))
    assert len(tried) == COARSE + 2 * FINE
    step = (3e-2 / 3e-4) ** (1 / (COARSE - 1))
    assert abs(np.log(max(tried, key=score) / best)) <= np.log(step) / 2 ** (FINE + 1) + 1e-9


@pytest.mark.parametrize("name", PROGRAMS)
def test_other_programs_solve_the_same_problem(name: str) -> None:
    """Fully sampled, without noise and with next to no regulariser, they all give back the picture."""
    if (obstacle := BASELINES[name].obstacle()) is not None:
        pytest.skip(f"{name} {obstacle}")
    scan = scan_of()
    kind = BASELINES[name]
    assert issubclass(kind, Sense)
    for case in (scan, scan.one_coil("1")):
        y, physics, _ = case.measure("random x1", 0)
        assert case.scored(kind(1e-6)(y, physics))["psnr"] > 35
    weak, strong = (kind(weight)(*scan.measure("random x2", 0)[:2]) for weight in (1e-4, 1.0))
    assert scan.scored(weak)["psnr"] > scan.scored(strong)["psnr"] + 3
    with pytest.raises(Incompatible, match="needs Cartesian slices of MRI"):
        kind(1e-3)(torch.rand(1, 1, 8, 8), build_inpainting())


def build_inpainting() -> torch.nn.Module:
    from deepinv.physics import Inpainting

    return Inpainting((1, 8, 8), mask=0.5)


def test_a_comparison_averages_over_masks_and_keeps_every_score(quick: None) -> None:
    scan = scan_of(noise=0.02)
    methods = ["start", "sigpy-wavelet", "schedule"]
    plan = ScanComparison(scan, "slice", ["random x2"], methods, torch.device("cpu"), seed=3, seeds=2)
    plan.check()
    ticks: list[str] = []
    results = Results(None, 3, 2)
    plan.run(results, ticks.append)
    assert len(ticks) == len(plan) == 2 * (2 + COARSE + 2 * FINE)
    assert [row["method"] for row in results.rows] == methods
    images = results.content["images"]
    for row in results.rows:
        own = [image for image in images if image["method"] == row["method"]]
        assert [image["seed"] for image in own] == [3, 4]
        assert row["count"] == 2
        assert row["psnr"] == pytest.approx(sum(image["psnr"] for image in own) / 2, abs=1e-4)
        assert ("weight" in own[0]) == (row["method"] == "sigpy-wavelet")
    (example,) = plan.examples()
    shown = {name: image for name, image in example.images.items()}
    y, physics, _ = scan.measure("random x2", 3)
    baseline = build_baseline("sigpy-wavelet")
    assert isinstance(baseline, Sense)
    (first,) = (image for image in images if image["method"] == "sigpy-wavelet" and image["seed"] == 3)
    baseline.weight = first["weight"]
    assert_close(shown["sigpy-wavelet"][None], scan.shown(baseline(y, physics)), 1e-4)
    assert results.rows[2]["psnr"] > results.rows[0]["psnr"], "the schedule is no worse than its start"


def test_the_command_writes_table_numbers_and_picture(
    saved: tuple[Path, Path], tmp_path: Path, say: Callable[..., Said], quick: None
) -> None:
    out = tmp_path / "out"
    options = ["--maps", saved[1], "--out", out, "--setting", "random x4", "--method", "start,schedule"]
    said = say("bench", "scan", saved[0], *options)
    assert said.code == 0, said.err
    assert "random x4" in said.out
    content = json.loads((out / "scan.json").read_text())
    assert [row["method"] for row in content["rows"]] == ["start", "schedule"]
    assert content["rows"][1]["kept"] == pytest.approx(0.25, abs=0.01)
    assert "random x4" in (out / "scan.md").read_text()
    assert (out / "scan.png").read_bytes().startswith(b"\x89PNG")
    single = say("bench", "scan", saved[0], *options, "--coil", "combined")
    assert single.code == 0, single.err
    assert json.loads((out / "scan.json").read_text())["rows"][0]["dataset"] == "scan combined"


def test_programs_that_are_not_installed_are_left_out_unless_asked_for(
    saved: tuple[Path, Path], tmp_path: Path, say: Callable[..., Said], quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pnpilot.baselines.base.which", lambda _: None)
    options = ["--maps", saved[1], "--out", tmp_path / "out", "--setting", "random x4"]
    said = say("bench", "scan", saved[0], *options)
    assert said.code == 0, said.err
    assert "left out: bart-tv needs the program bart: apt-get install bart" in said.err
    rows = json.loads((tmp_path / "out" / "scan.json").read_text())["rows"]
    assert [row["method"] for row in rows] == [name for name in known_methods() if not name.startswith("bart")]
    asked = say("bench", "scan", saved[0], *options, "--method", "bart-tv")
    assert asked.code == 2
    assert asked.err.strip().splitlines()[-1].endswith("apt-get install bart")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (["--method", "magic"], "unknown method 'magic'; known: start, "),
        (["--setting", "spiral x4"], "spiral"),
        (["--setting", "radial"], "unknown setting 'radial'"),
        (["--coil", "9"], "the coil must be 'combined' or a number below 4, got '9'"),
        (["--maps", "nothing.npy"], "nothing.npy is not a readable NumPy file"),
        (["--maps", "REAL"], "holds float32 numbers; k-space and coil maps are complex"),
    ],
)
def test_bad_input_is_one_line(
    change: list[str], told: str, saved: tuple[Path, Path], tmp_path: Path, say: Callable[..., Said]
) -> None:
    np.save(tmp_path / "real.npy", np.ones((COILS, HEIGHT, WIDTH), np.float32))
    words = [str(tmp_path / "real.npy") if word == "REAL" else word for word in change]
    given = ["--maps", str(saved[1])] if "--maps" not in words else []
    said = say("bench", "scan", saved[0], "--out", tmp_path / "out", *given, *words)
    assert said.code == 2
    assert told in said.err
    assert len(said.err.strip().splitlines()) == 1


def test_centred_transforms_undo_each_other() -> None:
    image = picture()
    assert_close(centred_ifft2(centred_fft2(image)), image)
