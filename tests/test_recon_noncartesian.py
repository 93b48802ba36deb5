"""Files with trajectories: units, axes, weights, coil maps, and images from them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pnpilot import PnPilot
from pnpilot.denoisers import Denoiser
from pnpilot.errors import BadInput
from pnpilot.io.cfl import read_cfl
from pnpilot.io.raw import Raw, Scratch, Stored
from pnpilot.io.readers import _trial, open_raw
from pnpilot.physics.nufft import samples_of
from pnpilot.recon import Options, batch, reconstruct_file
from pnpilot.recon.modalities import understood
from pnpilot.recon.modalities.noncartesian import NonCartesianScan
from pnpilot.tasks.multi_coil import simulated_maps
from pnpilot.tasks.spiral import spiral
from tests.cli import Said
from tests.files.make_hdf5 import acquired, header, images, write_mrd
from tests.scans import pictures

pytest.importorskip("finufft")
FILE = Path(__file__).parent / "files" / "spiral.mat"
SIZE, COILS = 24, 3
WAY = spiral(SIZE, 1.0, 0.2)
ARMS = max(2, round(SIZE / 8))
Array = NDArray[Any]


@pytest.fixture(autouse=True)
def _no_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_trial, "tried", lambda *_: None)


def measured(count: int = 1, noise: float = 0.002) -> tuple[Array, Array]:
    """Samples (images, coils, arms, samples) of spirals, and coil maps."""
    maps = simulated_maps(COILS, SIZE, SIZE, torch.Generator().manual_seed(0))
    truth = torch.from_numpy(pictures(count, SIZE, SIZE)).to(torch.complex64)
    y = torch.stack([samples_of(maps * one, WAY) for one in truth]).reshape(count, COILS, ARMS, -1)
    grain = torch.randn(2, *y.shape, generator=torch.Generator().manual_seed(1))
    return (y + noise * torch.complex(*grain)).numpy(), maps.numpy()


PLACES = WAY.reshape(ARMS, -1, 2).numpy()
"""(arms, samples, 2), rows first."""
COMPLEX = PLACES[..., 1] + 1j * PLACES[..., 0]


def scan(data: Array, way: Array, axes: tuple[str, ...] | None = None, **others: Any) -> NonCartesianScan:
    """What a file with these arrays is understood as."""
    options = others.pop("options", Options(matrix=SIZE, without=frozenset({"field"})))
    beside = {"trajectory": Stored(way), **{name: Stored(others.pop(name)) for name in ("density",) if name in others}}
    maps = Stored(others.pop("maps")) if "maps" in others else None
    raw = Raw(Stored(data, axes), "numpy", kind="noncartesian", beside=beside, maps=maps, **others)
    found = understood(raw, options, Scratch(Path()))
    assert isinstance(found, NonCartesianScan)
    return found


@pytest.mark.parametrize("layout", ["coils first", "coils last", "components first", "BART", "time", "pairs"])
def test_axes_are_found_by_the_trajectory(layout: str) -> None:
    y, maps = measured(2)
    data, way, axes = y[0], COMPLEX, None
    if layout == "coils last":
        data, way = np.moveaxis(data, 0, -1).swapaxes(0, 1), COMPLEX.T
    if layout == "components first":
        way = np.stack([COMPLEX.real, COMPLEX.imag])
    if layout == "BART":
        data = data.transpose(2, 1, 0)[None]
        way = np.stack([COMPLEX.real.T, COMPLEX.imag.T, 0 * COMPLEX.real.T])
    if layout == "time":
        data, axes = y, ("time", "coil", "arm", "sample")
    if layout == "pairs":
        data = np.stack([data.real, data.imag], -1)
    found = scan(data, way, axes, maps=maps)
    image = found[0]
    order = np.argsort(image.trajectory.numpy()[:, 0], kind="stable")
    wanted = np.argsort(WAY.numpy()[:, 0], kind="stable")
    np.testing.assert_allclose(image.trajectory.numpy()[order], WAY.numpy()[wanted], atol=1e-6)
    np.testing.assert_allclose(image.y.numpy()[:, order], y[0].reshape(COILS, -1)[:, wanted], atol=1e-5)
    assert (found.counting, found.shape, len(found)) == ((("time",), (2,), 2) if layout == "time" else ((), (), 1))


def test_each_image_may_have_a_trajectory_of_its_own() -> None:
    y, maps = measured(2)
    ways = np.stack([COMPLEX, 1j * COMPLEX])
    found = scan(y, ways, ("time", "coil", "arm", "sample"), maps=maps)
    first, second = found[0].trajectory, found[1].trajectory
    assert torch.allclose(second, torch.stack([first[:, 1], -first[:, 0]], 1))


@pytest.mark.parametrize(
    ("factor", "matrix", "words"),
    [(1, SIZE, "cycles per pixel"), (2 * np.pi, SIZE, "radians per pixel"), (SIZE, None, "cycles per field of view")],
)
def test_units_are_told_by_the_range(factor: float, matrix: int | None, words: str) -> None:
    y, maps = measured()
    found = scan(y[0], factor * COMPLEX, maps=maps, options=Options(matrix=matrix))
    np.testing.assert_allclose(found[0].trajectory.numpy(), WAY.numpy(), atol=1e-6)
    assert any(words in note for note in found.notes)


def test_the_matrix_is_read_from_the_density_and_from_readouts() -> None:
    y, _ = measured()
    grid = np.add.outer(1j * np.arange(-8, 8), np.arange(-8, 8)) / 16
    wide = scan(np.ones((3, 16, 16)) + 0j, grid, options=Options())
    assert (wide.sizes, wide.field) == ((16, 16), (18, 18))
    assert scan(y[0], COMPLEX, options=Options(matrix=32)).field == (36, 36)
    spokes = np.linspace(-0.5, 0.5, 33)[:-1] * np.exp(1j * np.pi * np.arange(5) / 5)[:, None]
    assert scan(np.ones((5, 32)) + 0j, spokes, options=Options()).sizes == (32, 32)


def test_weights_are_those_of_the_file_and_zeros_count_for_nothing() -> None:
    y, maps = measured()
    density = np.abs(COMPLEX).astype(np.float32)
    image = scan(y[0], COMPLEX, maps=maps, density=density)[0]
    np.testing.assert_allclose(image.weights.numpy(), density.ravel())
    y[0, :, 1] = 0
    cut = scan(y[0], COMPLEX, maps=maps)[0]
    assert not cut.weights.reshape(ARMS, -1)[1].any()
    assert cut.weights.reshape(ARMS, -1)[[0, 2]].all()
    nothing = scan(0 * y[0], COMPLEX)[0]
    assert nothing.empty
    assert nothing.nothing().shape == (SIZE, SIZE)


def test_images_follow_their_samples(smoother: Denoiser) -> None:
    """Both in one batch, behind maps that were given."""
    y, maps = measured(2)
    found = scan(y, COMPLEX, ("time", "coil", "arm", "sample"), maps=maps)
    prepared = [found[0], found[1]]
    assert all(image.calibration == "maps that were given" for image in prepared)
    assert prepared[0].kind == prepared[1].kind
    result = PnPilot(smoother)(*batch(prepared))
    for image, truth in zip(result, np.abs(pictures(2, SIZE, SIZE)), strict=True):
        magnitude = np.abs(prepared[0].finished(image))
        assert np.square(magnitude - truth).mean() < 0.02 * np.square(truth).mean()


@pytest.mark.parametrize(
    ("way", "change", "message"),
    [
        (COMPLEX[:, :-1], {}, "does not fit data 3×3×"),
        (COMPLEX * np.nan, {}, "NaN or infinite"),
        (np.zeros((2, *COMPLEX.shape)), {}, "zero everywhere"),
        (np.stack([COMPLEX.real, COMPLEX.imag, 0.2 + COMPLEX.real]), {}, "leaves its plane"),
        (1e6 * COMPLEX, {"options": Options()}, "in which units"),
        (64 * COMPLEX, {}, "more than half of a matrix of 24"),
        (COMPLEX, {"density": np.ones(3)}, r"the density has shape \(3,\)"),
        (COMPLEX, {"density": -np.ones(COMPLEX.shape)}, "negative weights"),
        (COMPLEX, {"maps": np.ones((5, SIZE, SIZE))}, r"\(3, rows, columns\) for 3 coils"),
        (COMPLEX, {"axes": ("coil", "slice", "time")}, "call it sample"),
        (COMPLEX, {"axes": ("coil", "arm")}, "--axes names 2"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(way: Array, change: dict[str, Any], message: str) -> None:
    axes = change.pop("axes", None)
    if axes:
        change["options"] = Options(axes=axes)
    with pytest.raises(BadInput, match=message) as caught:
        scan(measured()[0][0], way, **change)
    assert "\n" not in str(caught.value)


def test_a_kind_without_its_trajectory_is_refused() -> None:
    with pytest.raises(BadInput, match="--trajectory FILE"):
        understood(Raw(Stored(np.ones((4, 4)) + 0j), "numpy", kind="noncartesian"), Options(), Scratch(Path()))


def test_the_file_becomes_an_image(tmp_path: Path, smoother: Denoiser) -> None:
    """k, w and data of four coils, whose maps are found."""
    outcome = reconstruct_file(FILE, tmp_path, formats=["npy"], options=Options(matrix=16), model=PnPilot(smoother))
    image, truth = np.abs(np.load(tmp_path / "spiral.npy")), np.linalg.norm(images(4, 16, 16), axis=0)
    assert np.square(image - truth).mean() < 0.02 * np.square(truth).mean()
    assert outcome.report is not None
    assert "samples are data, along k" in outcome.report["read"]["notes"]
    assert "JSENSE" in outcome.report["images"][0]["calibration"]


def arrays() -> dict[str, Array]:
    import scipy.io

    return {name: value for name, value in scipy.io.loadmat(FILE).items() if not name.startswith("_")}


def as_npz(folder: Path) -> Path:
    np.savez(folder / "one.npz", traj=arrays()["k"], dcf=arrays()["w"], kspace=arrays()["data"])
    return folder / "one.npz"


def as_hdf5(folder: Path) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "one.h5", "w") as file:
        file["trajectory"], file["density"], file["kdata"] = (arrays()[name] for name in ("k", "w", "data"))
    return folder / "one.h5"


@pytest.mark.parametrize("write", [as_npz, as_hdf5])
def test_other_formats_hold_the_same(write: Callable[[Path], Path], tmp_path: Path) -> None:
    for path in (FILE, write(tmp_path)):
        with open_raw(path, Scratch(tmp_path)) as raw:
            assert raw.kind == "noncartesian"
            assert raw.measured is not None
            np.testing.assert_array_equal(raw.measured.data[...], arrays()["data"])
            np.testing.assert_array_equal(raw.beside["trajectory"].data[...], arrays()["k"])
            np.testing.assert_array_equal(raw.beside["density"].data[...], arrays()["w"])


def test_trajectory_and_density_may_have_files_of_their_own(tmp_path: Path, say: Callable[..., Said]) -> None:
    k, w, data = (arrays()[name] for name in ("k", "w", "data"))
    for name, array in (("k", np.stack([k.real, k.imag], -1)), ("w", w), ("data", data[..., 0])):  # of one coil
        np.save(tmp_path / f"{name}.npy", array)
    command = ["reconstruct", str(tmp_path / "data.npy"), "--out", str(tmp_path / "out"), "--format", "npy"]
    own = ["--trajectory", str(tmp_path / "k.npy"), "--density", str(tmp_path / "w.npy"), "--matrix", "16"]
    said = say(*command, *own)
    assert said.code == 0, said.err
    assert np.load(tmp_path / "out" / "data.npy").shape == (16, 16)
    assert "weights of samples as given" in said.err


def test_acquisitions_with_trajectories_are_read(tmp_path: Path) -> None:
    """Two slices of three arms, the last of the second missing; what is discarded has no place."""
    pytest.importorskip("ismrmrd")
    y, _ = measured(2)
    lines = []
    for number, arm in ((0, 0), (1, 0), (1, 1), (0, 1), (0, 2)):
        line = acquired(np.pad(y[number, :, arm], ((0, 0), (2, 1))), slice=number, discard_pre=2, discard_post=1)
        places = np.pad(PLACES[arm, :, ::-1], ((2, 1), (0, 0)))
        line.resize(line.number_of_samples, line.active_channels, 2)
        line.data[:] = np.pad(y[number, :, arm], ((0, 0), (2, 1)))
        line.traj[:] = places
        lines.append(line)
    sizes = {"x": SIZE, "y": SIZE, "z": 1}
    path = write_mrd(tmp_path / "spiral.h5", header(sizes, sizes, "spiral"), lines)
    with open_raw(path, Scratch(tmp_path)) as raw:
        found = understood(raw, Options(without=frozenset({"field"})), Scratch(tmp_path))
        assert isinstance(found, NonCartesianScan)
        assert (found.counting, found.shape, found.sizes) == (("slice",), (2,), (SIZE, SIZE))
        first, second = found.readouts.samples({"slice": 0}), found.readouts.samples({"slice": 1})
        np.testing.assert_allclose(first, y[0].reshape(COILS, -1), rtol=1e-5)
        half = 2 * PLACES.shape[1]
        np.testing.assert_allclose(second[:, :half], y[1, :, :2].reshape(COILS, -1), rtol=1e-5)
        assert not second[:, half:].any()
        way = found.readouts.own(found.positions, {"slice": 0}).reshape(-1, 2)
        np.testing.assert_allclose(way, WAY.numpy(), atol=1e-6)


def test_without_finufft_a_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = measured()
    monkeypatch.setitem(__import__("sys").modules, "finufft", None)
    with pytest.raises(BadInput, match=r"pip install 'pnpilot\[noncartesian\]'"):
        scan(data[0], COMPLEX)


@pytest.mark.skipif(shutil.which("bart") is None, reason="BART is not installed")
def test_spokes_of_bart_become_its_phantom(tmp_path: Path, smoother: Denoiser) -> None:
    for command in ("traj -r -x 32 -y 25 way", "phantom -k -t way spokes"):
        subprocess.run(["bart", *command.split()], cwd=tmp_path, check=True, capture_output=True)
    options = Options(trajectory=tmp_path / "way.cfl")
    reconstruct_file(
        tmp_path / "spokes.cfl", tmp_path / "out", formats=["npy"], options=options, model=PnPilot(smoother)
    )
    subprocess.run(["bart", *["phantom", "-x", "32", "truth"]], cwd=tmp_path, check=True, capture_output=True)
    truth, image = np.abs(np.squeeze(read_cfl(tmp_path / "truth"))).T, np.abs(np.load(tmp_path / "out" / "spokes.npy"))
    assert image.shape == (32, 32)
    # It is upright, and blurred.
    right, *others = (
        np.corrcoef(image.ravel(), turned.ravel())[0, 1] for turned in (truth, truth.T, truth[::-1], truth[:, ::-1])
    )
    assert right > max(0.5, *others)
