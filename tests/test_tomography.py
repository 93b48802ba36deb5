"""Tomograms: rays around any axis, what counts show of them, and where the axis is."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from deepinv.physics import Tomography as DeepinvTomography

from pnpilot import PnPilot
from pnpilot.denoisers import Denoiser
from pnpilot.errors import BadInput, PnPilotError
from pnpilot.io.raw import Scratch
from pnpilot.io.readers import open_raw
from pnpilot.physics import ParallelBeam
from pnpilot.policies.schedules import Schedule
from pnpilot.problems import open_problem
from pnpilot.recon import Options, batch, reconstruct_file, understood
from pnpilot.recon.modalities.tomography import Tomography
from pnpilot.recon.rays import Fields, Rays, from_counts, without_rings
from pnpilot.recon.rotation import found_centre, gap
from pnpilot.solvers import build_solver
from tests.contracts import inner, random_like

FILE = Path(__file__).parent / "files" / "data_exchange.h5"
CENTRE = 22.0
"""Where the axis of that file is."""
VIEWS = torch.arange(40) * 4.5


def disks(size: int = 48) -> torch.Tensor:
    """Two disks of attenuation 1 and 0.5, (1, 1, size, size)."""
    rows, columns = (torch.arange(size) - (size - 1) / 2).unbind(), torch.arange(size) - (size - 1) / 2
    away = [((torch.stack(rows)[:, None] - y) ** 2 + (columns - x) ** 2).sqrt() for y, x in ((2, -4), (-7, 6))]
    return ((away[0] < 9).float() + 0.5 * (away[1] < 5).float())[None, None]


def beam(centre: float | None = None, width: int = 48, **others: Any) -> ParallelBeam:
    return ParallelBeam(VIEWS, width, 48, centre, **others)


def test_around_the_middle_it_measures_as_deepinv_does() -> None:
    theirs = DeepinvTomography(angles=VIEWS, img_width=48, circle=True, normalize=False).A(disks()).transpose(2, 3)
    assert (beam().A(disks()) - theirs).norm() < 0.02 * theirs.norm()


@pytest.mark.parametrize(("centre", "width"), [(None, 48), (20.3, 60), (5.0, 40)])
def test_the_adjoint_is_exact_and_is_the_gradient(centre: float | None, width: int) -> None:
    weights = torch.rand(2, 1, 40, width, generator=torch.Generator().manual_seed(0))
    rays = beam(centre, width, weights=weights)
    x = random_like(torch.zeros(2, 1, 48, 48), 1).requires_grad_()
    w = random_like(torch.zeros(2, 1, 40, width), 2).requires_grad_()
    back = rays.A_adjoint(w)
    torch.testing.assert_close(inner(rays.A(x), w), inner(x, back), rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(torch.autograd.grad(inner(rays.A(x), w).sum(), x)[0], back)
    torch.testing.assert_close(torch.autograd.grad(inner(back, x).sum(), w)[0], rays.A(x))


def test_another_centre_shifts_what_is_measured() -> None:
    middle, aside = beam(), beam(23.5 + 7, 60)
    torch.testing.assert_close(aside.A(disks())[..., 7:55], middle.A(disks()), rtol=1e-4, atol=1e-4)


def test_filtered_back_projection_takes_angles_in_any_order_and_density() -> None:
    dense = torch.cat([torch.arange(0, 90, 1.0), torch.arange(90, 180, 2.0)])
    order = torch.randperm(len(dense), generator=torch.Generator().manual_seed(0))
    for angles in (torch.arange(0, 180, 2.0), dense[order], torch.arange(0, 360, 3.0)):
        rays = ParallelBeam(angles, 56, 48, 29.3)
        found = rays.fbp(rays.A(disks()))
        error = (found - disks())[..., rays.seen()].square().mean().sqrt()
        assert error < 0.08, angles[:3]
        assert abs(float(found[..., 22:28, 16:22].mean()) - 1) < 0.02


def test_weights_of_images_follow_them() -> None:
    weights = torch.ones(3, 1, 40, 48)
    weights[1, ..., 10] = 0
    weights[2] = 0.5
    rays = beam(weights=weights)
    problem = open_problem(rays.A(disks().expand(3, -1, -1, -1)), rays)
    chosen = problem.select(torch.tensor([1]))
    assert problem.measurements[1] < problem.measurements[0]
    start = problem.x0()
    torch.testing.assert_close(chosen.D(start[1:2]), problem.D(start)[1:2])


def fields(level: float = 4000, gain: float = 1.7) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Flat and dark frames with that gain: a beam that flickers, on a dark field of 100 with a read noise of 4."""
    rng = np.random.default_rng(1)
    flicker = 1 + 0.05 * rng.standard_normal((12, 1))
    flats = gain * rng.poisson(level / gain * flicker, (12, 400)) + 100 + 4 * rng.standard_normal((12, 400))
    return flats, 100 + 4 * rng.standard_normal((12, 400)), rng


def test_flats_show_the_noise_of_every_ray() -> None:
    flats, darks, rng = fields()
    flats[:, 7] = darks[:, 7]
    known = Fields.of(flats, darks)
    assert known.gain == pytest.approx(1.7, rel=0.1)
    truth = np.linspace(0, 2.5, 400)
    counts = 1.7 * rng.poisson(4000 / 1.7 * np.exp(-truth), (300, 400)) + 100 + 4 * rng.standard_normal((300, 400))
    rays = from_counts(counts, known)
    assert rays.known and rays.lost[:, 7].all() and rays.lost.mean() == 1 / 400
    # Their own noise is what differs between frames: that of the flat field is the same in all.
    ratio = rays.integrals.var(0, ddof=1)[8:] / rays.variance.mean(0)[8:]
    assert np.median(ratio[:100]) == pytest.approx(1, abs=0.15)
    assert np.median(ratio[-100:]) == pytest.approx(1, abs=0.15)
    assert abs(rays.integrals[:, 7].mean() - truth[7]) < 0.05  # from the pixels beside it


def test_no_light_is_a_lost_ray_and_no_infinity() -> None:
    flats, darks, _ = fields()
    counts = np.full((5, 400), 1500.0)
    counts[2, 30:35], counts[3] = -50, 0
    rays = from_counts(counts, Fields.of(flats, darks))
    assert np.isfinite(rays.integrals).all()
    assert rays.lost[2, 30:35].all() and rays.lost[3].all() and not rays.lost[0].any()


def test_a_block_of_dead_pixels_is_lost_without_a_warning() -> None:
    flats, darks, _ = fields()
    flats[:, 20:40] = darks[:, 20:40] = 100
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rays = from_counts(np.full((5, 400), 1500.0), Fields.of(flats, darks))
    assert rays.lost[:, 20:40].all() and np.isfinite(rays.integrals).all()


def test_what_a_pixel_always_reads_too_much_is_taken_off() -> None:
    turns, pixels = np.linspace(0, np.pi, 60, endpoint=False)[:, None], np.arange(128)
    clean = np.exp(-(((pixels - 60 - 20 * np.sin(turns + 1)) / 15) ** 2))
    odd = np.zeros(128)
    odd[[30, 62, 90]] = 0.08, -0.06, 0.05
    mended, excess = without_rings(Rays(clean + odd, np.ones_like(clean), False))
    left = np.abs(mended.integrals - clean)
    assert left[:, odd != 0].mean() < 0.2 * np.abs(odd[odd != 0]).mean()
    assert left[:, odd == 0].mean() < 0.005
    assert excess == pytest.approx(np.sqrt(np.mean(odd**2)), rel=0.2)


def middle(wall: float, aside: float, width: int = 128, radius: float = 40.2) -> np.ndarray:
    """Line integrals (angle, x) of a tube in the middle of the detector, or so far off it; a cylinder is all wall."""
    parts = (np.arange(8) + 0.5) / 8 - 0.5
    where = np.arange(width) - 65.3 - aside * np.cos(np.arange(90) * np.pi / 90)[:, None]
    chords = [np.sqrt(np.clip(r**2 - (where[..., None] + parts) ** 2, 0, None)) for r in (radius, radius - wall)]
    return np.asarray(0.04 * (chords[0] - chords[1]).mean(-1))


@pytest.mark.parametrize("noise", [0, 0.003, 0.02])
@pytest.mark.parametrize("aside", [0, 1, 3])
@pytest.mark.parametrize("wall", [3, 5, 10, 40.2])
def test_edges_of_what_is_in_the_middle_are_no_rings(wall: float, aside: float, noise: float) -> None:
    clean = middle(wall, aside)
    y = clean + noise * np.random.default_rng(0).standard_normal(clean.shape)
    mended, _ = without_rings(Rays(y, np.ones_like(y), False))
    left, before = (np.abs((own - clean).mean(0)) for own in (mended.integrals, y))
    assert left.max() <= 1.2 * before.max() + 1e-4
    assert np.square(left).mean() <= 1.1 * np.square(before).mean() + 1e-8


@pytest.mark.parametrize("noise", [0.003, 0.02])
@pytest.mark.parametrize(("wall", "aside"), [(10, 0), (40.2, 0), (40.2, 3)])
def test_rings_are_taken_off_what_is_in_the_middle(wall: float, aside: float, noise: float) -> None:
    clean, odd = middle(wall, aside), np.zeros(128)
    odd[[8, 52, 61, 62, 75, 122]] = 0.03, -0.03, 0.03, -0.03, 0.03, -0.03
    y = clean + odd + noise * np.random.default_rng(0).standard_normal(clean.shape)
    mended, _ = without_rings(Rays(y, np.ones_like(y), False))
    left = np.sqrt(np.square((mended.integrals - clean).mean(0)).mean())
    assert left < 0.4 * np.sqrt(np.square(odd).mean())


def test_gains_that_differ_everywhere_are_taken_off() -> None:
    rng = np.random.default_rng(0)
    turns, pixels = np.linspace(0, np.pi, 90, endpoint=False)[:, None], np.arange(128)
    clean = np.exp(-(((pixels - 60 - 20 * np.sin(turns + 1)) / 15) ** 2))
    odd = 0.02 * rng.standard_normal(128)
    mended, excess = without_rings(Rays(clean + odd, np.ones_like(clean), False))
    assert (mended.integrals - clean).mean(0).std() < 0.6 * odd.std()
    assert excess == pytest.approx(0.02, rel=0.3)


@pytest.mark.parametrize(("centre", "span"), [(17.0, 180), (22.4, 360), (31.25, 180)])
def test_the_axis_is_found(centre: float, span: int) -> None:
    angles = np.arange(60) * span / 60
    rays = ParallelBeam(torch.from_numpy(angles), 48, 48, centre)
    y = rays.A(disks())[0, 0].numpy() + 0.1 * np.random.default_rng(0).standard_normal((60, 48))
    assert found_centre(y, angles.tolist()) == pytest.approx(centre, abs=0.25)


def aside(x: float, y: float, radius: float, size: int = 64) -> torch.Tensor:
    """A large disk with a hole in it and a small dense one, (1, 1, size, size)."""
    along = torch.arange(size) - (size - 1) / 2
    parts = ((1, x, radius), (-0.5, x + radius / 3, radius / 4), (0.7, x - radius / 3, radius / 5))
    return sum(
        (value * (torch.hypot(along[:, None] - y, along - place) < own).float() for value, place, own in parts),
        torch.zeros(1, 1, size, size),
    )


@pytest.mark.parametrize(("centre", "span"), [(42.2, 180), (22.4, 180), (42.2, 120), (22.4, 120), (31.5, 90)])
@pytest.mark.parametrize("x", [-5, 5])
def test_the_axis_of_a_large_sample_far_from_the_middle_is_found(centre: float, span: int, x: float) -> None:
    angles = np.arange(span // 3) * 3.0
    rays = ParallelBeam(torch.from_numpy(angles), 64, 64, centre)
    y = rays.A(aside(x, 3, 13))[0, 0].numpy()
    y += 0.01 * y.max() * np.random.default_rng(0).standard_normal(y.shape)
    assert found_centre(y, angles.tolist()) == pytest.approx(centre, abs=0.15)


def test_angles_that_are_left_out_are_noticed() -> None:
    turns = np.random.default_rng(0).permutation(np.arange(0, 360, 2.0))
    for whole in (np.arange(0, 180, 3.0), turns, np.arange(8) * 22.5, np.linspace(0, 180, 91), np.arange(40) * 137.508):
        assert gap(whole.tolist()) == 0
    assert gap(np.arange(0, 120, 2.0).tolist()) == 62
    assert gap((np.arange(0, 90, 2.0) + 200).tolist()) == 92


def test_an_axis_from_some_angles_is_less_certain(tmp_path: Path) -> None:
    """And one of a sample that reaches past the detector is not certain at all."""
    views = torch.arange(40) * 3.0
    np.save(tmp_path / "angles.npy", views.numpy())
    for name, width, told in (("whole", 64, "leave out 63 degrees"), ("cut", 20, "--centre sets it")):
        rays = ParallelBeam(views, width, 64)
        np.save(tmp_path / f"{name}.npy", rays.A(0.1 * aside(0, 3, 20))[0, 0].numpy())
        scan = opened(tmp_path, tmp_path / f"{name}.npy", angles=tmp_path / "angles.npy")
        assert told in scan.notes[-1] and "certain" in scan.notes[-1]


def opened(tmp_path: Path, path: Path = FILE, **options: Any) -> Tomography:
    raw = open_raw(path, Scratch(tmp_path))
    if (angles := options.get("angles")) is not None:
        other = open_raw(angles, Scratch(tmp_path))
        assert other.mask is not None  # as a list of numbers is read
        raw.beside["angles"] = other.mask
    scan = understood(raw, Options(**options), Scratch(tmp_path))
    assert isinstance(scan, Tomography)
    return scan


def test_a_file_says_what_it_holds(tmp_path: Path) -> None:
    scan = opened(tmp_path)
    assert (scan.lengths, scan.shape, scan.sizes) == ({"angle": 40, "slice": 2, "x": 48}, (2,), (48, 48))
    assert scan.centre == pytest.approx(CENTRE, abs=0.2)
    assert set(scan[0].said) == {"lost rays", "rings", "noise"}
    assert scan[0].weights[:, 30].max() == 0
    y, physics = batch([scan[0], scan[1]])
    assert y.shape == (2, 1, 40, 48) and isinstance(physics, ParallelBeam)
    assert not opened(tmp_path, centre=CENTRE, without=frozenset({"rings"}))[0].said["rings"][0]


def test_files_are_reconstructed(tmp_path: Path, smoother: Denoiser) -> None:
    import h5py

    quick = Schedule(build_solver("admm", frozenset({"prox"})), 4)
    model = PnPilot(smoother, policy=quick, real=True)
    done = reconstruct_file(FILE, tmp_path, formats=["npy", "hdf5"], model=model)
    images = np.load(next(path for path in done.written if path.suffix == ".npy"))
    with h5py.File(next(path for path in done.written if path.suffix == ".h5")) as file:
        assert file["image"].dtype == np.float32
        np.testing.assert_array_equal(file["image"][()], images)
    assert images.shape == (2, 48, 48) and images.dtype == np.float32
    assert (images[:, 0, 0] == 0).all()
    assert images[1].sum() / images[0].sum() == pytest.approx(0.7, abs=0.05)
    assert done.report is not None
    distance = done.report["images"][0]["distance"]
    assert distance is not None and 0.5 < distance < 3


def changed(tmp_path: Path, **content: Any) -> Path:
    """The file with other arrays, or without those that are None."""
    import h5py

    path = tmp_path / f"without {len(content)} {sum(array is None for array in content.values())}.h5"
    with h5py.File(FILE) as old, h5py.File(path, "w") as new:
        for name in old["exchange"]:
            array = content.get(name, old["exchange"][name][()])
            if array is not None:
                new[f"exchange/{name}"] = array
    return path


def test_radians_and_missing_angles(tmp_path: Path) -> None:
    half = np.arange(40) * 4.5
    scan = opened(tmp_path, changed(tmp_path, theta=np.deg2rad(half)), centre=CENTRE)
    np.testing.assert_allclose(scan.angles, half)
    assert "taken for radians" in scan.notes[0]
    scan = opened(tmp_path, changed(tmp_path, theta=None), centre=CENTRE)
    np.testing.assert_allclose(scan.angles, half)
    assert "evenly over half a turn" in scan.notes[0]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"data": np.ones((40, 48))}, "projections have three"),
        ({"data": np.ones((40, 2, 48), np.complex64)}, "real numbers are needed"),
        ({"data": np.full((40, 2, 48), np.nan)}, "NaN or infinite"),
        ({"data_white": None}, "no flat field"),
        ({"data_white": np.ones((5, 3, 48))}, "do not go with"),
        ({"data_white": np.ones((5, 2, 48))}, "not brighter than the dark"),
        ({"theta": np.arange(39.0)}, "39 angles for 40"),
        ({"theta": np.ones((40, 2))}, "no list of angles"),
        ({"theta": np.full(40, np.inf)}, "the angles hold NaN"),
        ({"theta": np.full(40, 30.0)}, "all angles are the same"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, content: dict[str, Any], told: str) -> None:
    with pytest.raises(PnPilotError, match=told) as refusal:
        opened(tmp_path, changed(tmp_path, **content))
    assert len(str(refusal.value).splitlines()) == 1


def test_plain_arrays_with_angles(tmp_path: Path, smoother: Denoiser) -> None:
    integrals = 0.1 * ParallelBeam(VIEWS, 48, 48, 24.5).A(disks())[0, 0].numpy()
    np.save(tmp_path / "angles.npy", VIEWS.numpy())
    for name, values, taken in (
        ("integrals", integrals, "line integrals"),
        ("shares", np.exp(-integrals), "shares of photons"),
    ):
        np.save(tmp_path / f"{name}.npy", values)
        scan = opened(tmp_path, tmp_path / f"{name}.npy", angles=tmp_path / "angles.npy")
        assert taken in scan.notes[0] and scan.shape == ()
        assert scan.centre == pytest.approx(24.5, abs=0.2)
        np.testing.assert_allclose(scan._rays(0).integrals, integrals, atol=1e-5)
    turned = np.stack([integrals, integrals]).transpose(0, 2, 1)
    np.save(tmp_path / "turned.npy", turned)
    quick = Schedule(build_solver("admm", frozenset({"prox"})), 2)
    options = Options(angles=tmp_path / "angles.npy", centre=24.5)
    done = reconstruct_file(
        tmp_path / "shares.npy", tmp_path / "out", options=options, model=PnPilot(smoother, policy=quick, real=True)
    )
    assert np.load(done.written[0]).shape == (48, 48)
    named = opened(tmp_path, tmp_path / "turned.npy", angles=tmp_path / "angles.npy", axes="slice,x,angle")
    assert named.shape == (2,)
    np.testing.assert_allclose(named._rays(1).integrals, integrals, atol=1e-5)


def test_a_centre_beside_the_detector_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="from 0 to 47"):
        opened(tmp_path, centre=48.5)
    assert opened(tmp_path, centre=20).centre == 20


def test_rays_must_fit_each_other() -> None:
    with pytest.raises(BadInput, match="weights must be"):
        beam(weights=torch.ones(1, 1, 3, 48))
    with pytest.raises(BadInput, match="must be 48×48"):
        beam().A(torch.ones(1, 1, 40, 40))
    assert math.isclose(float(beam()._shares().sum()), math.pi, rel_tol=1e-5)
