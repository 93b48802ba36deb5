"""Files in, images out: batches that are refilled, runs that are stopped and go on, results whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.denoisers import Denoiser
from pnpilot.errors import BadInput, UnknownName
from pnpilot.io.cfl import write_cfl
from pnpilot.policies.base import Policy
from pnpilot.problems import Problem
from pnpilot.recon import Options, Watch, reconstruct_file, reconstruct_files, stream
from pnpilot.recon.files import named_apart
from pnpilot.recon.journal import Journal
from pnpilot.recon.modalities._slice import Slice
from pnpilot.recon.prepared import Prepared, batch
from pnpilot.recon.run import Run
from pnpilot.solvers import build_solver
from pnpilot.types import Action
from tests.scans import saved, slices


@pytest.fixture
def model(smoother: Denoiser) -> PnPilot:
    return PnPilot(smoother)


class Impatient(Policy):
    """Stops images one after the other, the emptiest first; the last after five decisions."""

    stops = True

    def __init__(self) -> None:
        super().__init__(build_solver("admm", frozenset({"prox"})), 5)

    def __call__(self, problem: Problem, state: Any, t: int) -> Action:
        action = self.constant(problem, sigma=0.02, mu=0.5)
        return action._replace(stop=problem.kept < 0.25 + 0.1 * t)


class Counting(Watch):
    def __init__(self) -> None:
        self.ticks, self.said, self.begun = 0.0, list[str](), list[tuple[int, int]]()

    def begin(self, file: Path, images: int, done: int) -> None:
        self.begun.append((images, done))

    def tick(self, images: float) -> None:
        self.ticks += images

    def say(self, sentence: str) -> None:
        self.said.append(sentence)


class Interrupted(Counting):
    """Ctrl-C after the work of so many images."""

    def __init__(self, after: float) -> None:
        super().__init__()
        self.after = after

    def tick(self, images: float) -> None:
        super().tick(images)
        if self.ticks >= self.after:
            raise KeyboardInterrupt


def single_coils(count: int) -> Iterator[Slice]:
    """Every third image is sampled much more densely."""
    for number, kspace in enumerate(slices(count, noise=0.0)):
        mask = torch.ones(kspace.shape[1:]) if number % 3 == 0 else torch.from_numpy((kspace[0] != 0).astype("f"))
        mask = mask * (torch.arange(mask.shape[1]) % (1 + number % 3) == 0)
        yield Slice(number, torch.from_numpy(kspace) * mask, mask)


def test_images_that_stop_make_room_for_new_ones(smoother: Denoiser, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, begun, active = 0, list[int](), list[int]()

    class Followed(stream.Cohort):
        def __init__(self, model: PnPilot, images: list[Prepared]) -> None:
            super().__init__(model, images)
            begun.append(len(images))
            cohorts.append(self)
            active.append(sum(cohort.active for cohort in cohorts))

    cohorts: list[stream.Cohort] = []
    monkeypatch.setattr(stream, "Cohort", Followed)

    def counted() -> Iterator[Prepared]:
        nonlocal asked
        for image in single_coils(12):
            asked += 1
            yield image

    order, before_first = list[int](), 0
    for finished in stream.stream(PnPilot(smoother, policy=Impatient()), counted(), room=4):
        before_first = before_first or asked
        order.append(finished.number)
    assert sorted(order) == list(range(12))
    assert max(active) <= 4, "never more than the room"
    assert before_first > 5, "new images were begun before the first batch was finished"
    assert begun[0] == 4 and len(begun) > 3


def test_images_in_a_stream_are_those_that_the_model_gives_one_by_one(model: PnPilot) -> None:
    images = list(single_coils(5))
    found = {own.number: own for own in stream.stream(model, iter(images), room=3)}
    for image in images:
        alone = model.reconstruct(*batch([image]))
        expected = torch.complex(*alone.image.chunk(2, 1))[0, 0].numpy()
        np.testing.assert_allclose(found[image.number].image, expected, atol=1e-5 * np.abs(expected).max())
        assert found[image.number].record["iterations"] == alone.trace[0]["iterations"]


def test_empty_images_come_back_empty_and_do_not_stop_the_others(tmp_path: Path, model: PnPilot) -> None:
    kspace = slices(4, coils=3)
    kspace[1] = 0
    outcome = reconstruct_file(saved(tmp_path / "scan.npz", kspace), tmp_path / "out", model=model)
    image = np.load(tmp_path / "out" / "scan.npy")
    assert not image[1].any()
    assert all(image[number].any() for number in (0, 2, 3))
    assert outcome.report is not None
    assert [own["empty"] for own in outcome.report["images"]] == [False, True, False, False]


def test_the_objection_of_pure_noise_is_about_one() -> None:
    """An image that explains its data up to their noise leaves a map of one in the root mean square."""
    from pnpilot.problems import Hints, open_problem

    (image,) = single_coils(1)
    noise = 0.05 * torch.complex(*torch.randn(2, 1, *image.mask.shape, generator=torch.Generator().manual_seed(1)))
    y, physics = batch([Slice(0, image.y + noise, image.mask)])
    problem = open_problem(y, physics, Hints(sigma_n=0.05, real=False))
    clean = open_problem(*batch([image]), Hints(peak=problem.units.peak, real=False)).x0()
    found = stream.objections(problem, clean).square().mean().sqrt()
    assert found == pytest.approx(1, abs=0.1)


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path, model: PnPilot) -> None:
    file = saved(tmp_path / "scan.npz", slices(6, coils=2))
    with pytest.raises(KeyboardInterrupt):
        reconstruct_file(file, tmp_path / "out", model=model, room=2, watch=Interrupted(after=4.5))
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".scan.unfinished"], "nothing looks finished"
    second = Counting()
    outcome = reconstruct_file(file, tmp_path / "out", model=model, room=2, watch=second)
    assert second.begun == [(6, 4)]
    assert second.ticks == pytest.approx(2)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"scan.npy", "scan.json", "scan.html"} == {path.name for path in outcome.written}
    reconstruct_file(file, tmp_path / "whole", model=model, room=2)
    assert np.array_equal(np.load(tmp_path / "out/scan.npy"), np.load(tmp_path / "whole/scan.npy"))


def test_images_that_were_damaged_meanwhile_are_done_again(tmp_path: Path, model: PnPilot) -> None:
    file = saved(tmp_path / "scan.npz", slices(4))
    with pytest.raises(KeyboardInterrupt):
        reconstruct_file(file, tmp_path / "out", model=model, room=1, watch=Interrupted(after=2.5))
    unfinished = tmp_path / "out/.scan.unfinished"
    (unfinished / "00000001.npz").write_bytes((unfinished / "00000001.npz").read_bytes()[:300])
    np.savez(unfinished / "00000077.npz", other=np.ones(3))
    (unfinished / "note.txt").write_text("mine")
    second = Counting()
    reconstruct_file(file, tmp_path / "out", model=model, watch=second)
    assert second.begun == [(4, 1)]
    assert np.abs(np.load(tmp_path / "out/scan.npy")).reshape(4, -1).any(1).all()


@pytest.mark.skipif(os.name == "nt", reason="needs locks of POSIX")
def test_two_runs_do_not_work_in_one_place(tmp_path: Path, model: PnPilot) -> None:
    file = saved(tmp_path / "scan.npz", slices(2))

    class Meanwhile(Counting):
        def begin(self, file: Path, images: int, done: int) -> None:
            with pytest.raises(BadInput, match="another run is at work"):
                reconstruct_file(file, tmp_path / "out", model=model)
            super().begin(file, images, done)

    watch = Meanwhile()
    assert reconstruct_file(file, tmp_path / "out", model=model, watch=watch).written
    assert watch.begun == [(2, 0)]


@pytest.mark.parametrize(
    "edited", [{}, {"written": None}, {"written": [1]}, {"written": ["../../etc/passwd"]}, {"order": 5}]
)
def test_reports_that_were_edited_are_not_believed(tmp_path: Path, model: PnPilot, edited: dict[str, Any]) -> None:
    file, report = saved(tmp_path / "scan.npz", slices(1)), tmp_path / "out/scan.json"
    reconstruct_file(file, tmp_path / "out", model=model)
    told = {**json.loads(report.read_text()), **edited} if edited else {}
    report.write_text(json.dumps(told))
    if edited == {"written": [1]}:
        assert not reconstruct_file(file, tmp_path / "out", model=model).again
    else:
        with pytest.raises(BadInput, match=r"scan\.json is there already, and not from here"):
            reconstruct_file(file, tmp_path / "out", model=model)


def test_neither_sidecars_nor_results_of_another_file_are_replaced(tmp_path: Path, model: PnPilot) -> None:
    file, sidecar = saved(tmp_path / "sub-01.npy", slices(1)[0, 0]), tmp_path / "sub-01.json"
    sidecar.write_text('{"EchoTime": 0.03}')
    for again in (False, True):
        with pytest.raises(BadInput, match=r"sub-01\.json is there already, and not from here"):
            reconstruct_file(file, tmp_path, model=model, formats=["png"], again=again)
    assert sidecar.read_text() == '{"EchoTime": 0.03}'
    reconstruct_file(file, tmp_path / "out", model=model)
    before = (tmp_path / "out/sub-01.npy").read_bytes()
    (tmp_path / "other").mkdir()
    other = saved(tmp_path / "other/sub-01.npy", slices(2)[1, 0])
    with pytest.raises(BadInput, match=r"is on another file, .*sub-01\.npy: choose another --out"):
        reconstruct_file(other, tmp_path / "out", model=model)
    assert (tmp_path / "out/sub-01.npy").read_bytes() == before
    assert not list((tmp_path / "out").glob(".*"))
    reconstruct_file(other, tmp_path / "out", model=model, again=True)
    assert (tmp_path / "out/sub-01.npy").read_bytes() != before


def test_a_folder_of_somebody_elses_pictures_is_not_replaced(tmp_path: Path, model: PnPilot) -> None:
    file, mine = saved(tmp_path / "scan.npz", slices(2)), tmp_path / "out/scan_png/0000.png"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(BadInput, match="scan_png is there already, and not from here"):
        reconstruct_file(file, tmp_path / "out", model=model, formats=["png"])
    assert mine.read_text() == "mine"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_name_that_is_no_text_is_a_name(tmp_path: Path, model: PnPilot) -> None:
    file = saved(tmp_path / "scan.npy", slices(1)[0, 0]).rename(os.fsdecode(bytes(tmp_path) + b"/bad\xff.npy"))
    (image, *_) = reconstruct_file(file, tmp_path / "out", model=model).written
    assert np.load(image).shape == (40, 32)


def test_other_maps_under_the_same_name_are_seen(tmp_path: Path, model: PnPilot) -> None:
    """A pair of BART's may be named without its suffix."""
    file, maps = saved(tmp_path / "scan.npz", slices(1, coils=2)), tmp_path / "maps"
    options = Options(maps=maps)
    write_cfl(maps, np.full((1, 40, 32, 2), 0.7, np.complex64))
    assert not reconstruct_file(file, tmp_path / "out", model=model, options=options).again
    assert reconstruct_file(file, tmp_path / "out", model=model, options=options).again
    write_cfl(maps, np.full((1, 40, 32, 2), 0.6, np.complex64))
    assert not reconstruct_file(file, tmp_path / "out", model=model, options=options).again


@pytest.mark.parametrize("name", ["bool.npy", "line.npy", "alone.npz", "beside.npz", "alone.mat", "alone.h5"])
def test_masks_and_maps_may_have_files_of_their_own(tmp_path: Path, name: str) -> None:
    """Bool or numbers, of one axis or two, alone or beside k-space."""
    import h5py
    import scipy.io

    file, path = saved(tmp_path / "scan.npz", slices(1, coils=2)), tmp_path / name
    mask, maps = np.zeros((40, 32), bool), np.full((2, 40, 32), 0.6, np.complex64)
    mask[:, 8:24] = True
    held: dict[str, Any] = {"mask": mask, "maps": maps}
    if name == "beside.npz":
        held["kspace"] = slices(2, coils=2)
    if path.suffix == ".npy":
        np.save(path, mask if name == "bool.npy" else mask[0].astype(float))
    elif path.suffix == ".npz":
        np.savez(path, **held)
    elif path.suffix == ".mat":
        scipy.io.savemat(path, held)
    else:
        with h5py.File(path, "w") as hdf5:
            hdf5["mask"] = mask
    both = path.suffix in (".npz", ".mat")
    options = Options(mask=path, maps=path if both else None)
    with contextlib.ExitStack() as files:
        scan = Run(file, options, Journal(tmp_path / "journal", {}), files).scan
        image = scan[0]
        assert isinstance(image, Slice)
        assert torch.equal(image.mask, torch.from_numpy(mask.astype("f")))
        assert not both or (image.maps is not None and torch.allclose(image.maps.abs(), torch.tensor(0.6)))
    if name != "beside.npz":
        with pytest.raises(BadInput, match="it holds no measurement"):
            reconstruct_file(path, tmp_path / "out")
        with pytest.raises(BadInput, match="it holds no noise"):
            reconstruct_file(file, tmp_path / "out", options=Options(noise=path))


def test_what_is_there_is_not_done_again(tmp_path: Path, model: PnPilot) -> None:
    file = saved(tmp_path / "scan.npz", slices(2))
    reconstruct_file(file, tmp_path / "out", model=model)
    second = Counting()
    assert reconstruct_file(file, tmp_path / "out", model=model, watch=second).again
    assert second.ticks == 0
    for change in ({"again": True}, {"options": Options(without=frozenset({"crop"}))}, {"formats": ["png"]}):
        third = Counting()
        assert not reconstruct_file(file, tmp_path / "out", model=model, watch=third, **change).again
        assert third.ticks == pytest.approx(2), change
    saved(file, slices(3))
    changed = reconstruct_file(file, tmp_path / "out", model=model, formats=["png"])
    assert not changed.again, "another file of the same name"


def test_parts_of_another_order_are_not_mixed_in(tmp_path: Path, model: PnPilot) -> None:
    file = saved(tmp_path / "scan.npz", slices(4))
    with pytest.raises(KeyboardInterrupt):
        reconstruct_file(file, tmp_path / "out", model=model, room=1, watch=Interrupted(after=2.5))
    second = Counting()
    options = Options(always=frozenset({"whitening"}))
    reconstruct_file(file, tmp_path / "out", model=model, options=options, watch=second)
    assert second.begun == [(4, 0)]


def test_the_same_file_twice_gives_the_same_bytes(tmp_path: Path, model: PnPilot) -> None:
    file = saved(tmp_path / "scan.npz", slices(3, coils=3))
    for out in ("one", "two"):
        reconstruct_file(file, tmp_path / out, model=model)
    assert (tmp_path / "one/scan.npy").read_bytes() == (tmp_path / "two/scan.npy").read_bytes()


def test_bad_files_are_skipped_and_told(tmp_path: Path, model: PnPilot) -> None:
    good = saved(tmp_path / "good.npz", slices(1))
    broken = tmp_path / "broken.npy"
    broken.write_bytes(good.read_bytes()[:300])
    missing, nan = tmp_path / "missing.h5", slices(2)
    nan[1, 0, 20, 16] = np.nan
    bad = saved(tmp_path / "nan.npz", nan)
    outcomes = list(reconstruct_files([broken, missing, bad, good], tmp_path / "out", model=model))
    assert [bool(outcome.error) for outcome in outcomes] == [True, True, True, False]
    for outcome in outcomes[:3]:
        assert outcome.error.startswith(str(outcome.file))
        assert "\n" not in outcome.error
    assert "image 1: k-space holds NaN" in outcomes[2].error
    assert (tmp_path / "out/good.npy").exists()
    assert not list((tmp_path / "out").glob("broken*"))


def test_neither_the_input_nor_other_peoples_files_are_replaced(tmp_path: Path, model: PnPilot) -> None:
    file = saved(tmp_path / "scan.npy", slices(2)[:, 0])
    with pytest.raises(BadInput, match=r"would replace its own input .*scan\.npy"):
        reconstruct_file(file, tmp_path, model=model)
    assert np.load(file).shape == (2, 40, 32)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/scan.npy").write_text("mine")
    with pytest.raises(BadInput, match="is there already, and not from here"):
        reconstruct_file(file, tmp_path / "out", model=model)
    assert (tmp_path / "out/scan.npy").read_text() == "mine"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["scan.npy"]
    reconstruct_file(file, tmp_path / "out", model=model, again=True)
    assert np.load(tmp_path / "out/scan.npy").shape == (2, 40, 32)


def test_a_pair_of_bart_files_does_not_replace_itself(tmp_path: Path, model: PnPilot) -> None:
    write_cfl(tmp_path / "scan", np.moveaxis(slices(1, coils=2)[0], 0, -1)[None])
    for name in ("scan.cfl", "scan.hdr", "scan"):
        with pytest.raises(BadInput, match="would replace its own input"):
            reconstruct_file(tmp_path / name, tmp_path, model=model)
    reconstruct_file(tmp_path / "scan", tmp_path / "out", model=model)
    assert (tmp_path / "out/scan.cfl").stat().st_size == 8 * 40 * 32


def test_results_of_files_with_one_name_are_told_apart(tmp_path: Path) -> None:
    a, b, other = tmp_path / "one/scan.h5", tmp_path / "two/scan.h5", tmp_path / "one/scan.npy"
    assert named_apart([tmp_path / "a.nii.gz", tmp_path / "b.h5"]) == {
        tmp_path / "a.nii.gz": "a",
        tmp_path / "b.h5": "b",
    }
    assert list(named_apart([a, other]).values()) == ["scan-h5", "scan-npy"]
    assert list(named_apart([a, b]).values()) == ["one-scan-h5", "two-scan-h5"]
    pair = [tmp_path / "scan.cfl", tmp_path / "scan.hdr"]
    assert list(named_apart(pair).values()) == ["scan"], "both files of a pair are one scan"
    assert list(named_apart([Path("scan.h5"), Path("scan.h5").absolute()]).values()) == ["scan"]
    with pytest.raises(BadInput, match="folders of their own"):
        named_apart([tmp_path / "x/one/scan.h5", tmp_path / "y/one/scan.h5"])


def test_the_report_says_what_was_done_and_found(tmp_path: Path, model: PnPilot) -> None:
    file = saved(tmp_path / "scan.npz", slices(3, coils=4))
    outcome = reconstruct_file(file, tmp_path / "out", model=model, formats=["hdf5", "png"])
    report = json.loads((tmp_path / "out/scan.json").read_text())
    assert outcome.report is not None
    assert report["read"]["axes"] == {"slice": 3, "coil": 4, "y": 40, "x": 32}
    said = {step["step"]: step for step in report["prepared"]}
    assert said["mask"]["said"].startswith("samples that are zero count as not measured: 50 %")
    assert said["coil maps"]["said"].startswith(("ESPIRiT from", "JSENSE"))
    assert [image["name"] for image in report["images"]] == ["slice 0", "slice 1", "slice 2"]
    for image in report["images"]:
        assert image["iterations"] == len(image["parameters"]["sigma"]) == 30
        assert image["kept"] == pytest.approx(0.5, abs=0.01)
        assert 0.003 < image["noise"] < 0.05
        assert image["distance"] < 3
    assert set(report["seconds"]) == {"reading", "preparing", "reconstruction", "writing"}
    assert report["versions"]["torch"] == torch.__version__
    page = (tmp_path / "out/scan.html").read_text()
    assert page.count("data:image/png;base64,") == 4, "three images, and the curves"
    import h5py

    with h5py.File(tmp_path / "out/scan.h5") as results:
        assert results["reconstruction"].shape == (3, 40, 32)
    assert len(list((tmp_path / "out/scan_png").iterdir())) == 3


def test_warnings_go_by_the_number_of_the_image_in_the_file(tmp_path: Path, model: PnPilot) -> None:
    kspace = slices(5)
    kspace[3] = np.roll(kspace[3], 9, axis=-1)  # off centre
    outcome = reconstruct_file(saved(tmp_path / "scan.npz", kspace), tmp_path / "out", model=model, room=2)
    assert outcome.report is not None
    told = [image["warnings"] for image in outcome.report["images"]]
    assert any("in image 3 is" in line for line in told[3])
    assert not any("off" in line or "image 3" in line for number in (0, 1, 2, 4) for line in told[number])


def test_pictures_are_measured_anew_only_if_asked(tmp_path: Path, model: PnPilot) -> None:
    from PIL import Image

    from tests.scans import pictures

    truth = np.abs(pictures(1, 64, 48)[0])
    file = tmp_path / "slice.png"
    Image.fromarray((255 * truth / truth.max()).astype(np.uint8)).save(file)
    with pytest.raises(BadInput, match="finished images, not a measurement: --simulate"):
        reconstruct_file(file, tmp_path / "out", model=model)
    watch = Counting()
    outcome = reconstruct_file(file, tmp_path / "out", model=model, options=Options(simulate="radial x2"), watch=watch)
    assert outcome.report is not None
    assert any(line.startswith("SIMULATED") for line in watch.said)
    assert any(line.startswith("SIMULATED") for line in outcome.report["warnings"])
    assert "SIMULATED" in (tmp_path / "out/slice.html").read_text()
    found = np.asarray(Image.open(tmp_path / "out/slice.png")).astype(float) / 255
    assert found.shape == truth.shape
    assert np.abs(found - truth / truth.max()).mean() < 0.05
    with pytest.raises(BadInput, match="--simulate takes one of"):
        reconstruct_file(file, tmp_path / "out", model=model, options=Options(simulate="spiral x2"))
    scan = saved(tmp_path / "scan.npz", slices(1))
    with pytest.raises(BadInput, match="this file holds a measurement"):
        reconstruct_file(scan, tmp_path / "out", model=model, options=Options(simulate="radial x2"))


@pytest.mark.parametrize("form", ["dicom", "nifti", "png", "tiff", "hdf5"])
def test_what_was_simulated_says_so_wherever_it_goes(tmp_path: Path, model: PnPilot, form: str) -> None:
    from PIL import Image

    Image.fromarray((np.outer(np.hanning(40), np.hanning(32)) * 255).astype(np.uint8)).save(tmp_path / "a.png")
    outcome = reconstruct_file(
        tmp_path / "a.png", tmp_path / "out", model=model, options=Options(simulate="radial x2"), formats=[form]
    )
    content = outcome.written[0].read_bytes()
    if form == "nifti":
        import gzip

        content = gzip.decompress(content)
    assert b"SIMULATED" in content
    plain = reconstruct_file(saved(tmp_path / "scan.npz", slices(1)), tmp_path / "out", model=model, formats=[form])
    assert b"SIMULATED" not in plain.written[0].read_bytes()


def test_an_empty_file_is_refused(tmp_path: Path, model: PnPilot) -> None:
    file = saved(tmp_path / "scan.npz", np.zeros((2, 2, 40, 32), np.complex64))
    with pytest.raises(BadInput, match="the measurement is zero everywhere"):
        reconstruct_file(file, tmp_path / "out", model=model)
    assert not list((tmp_path / "out").iterdir())


def test_another_model_does_not_go_on_with_the_work_of_the_first(tmp_path: Path, smoother: Denoiser) -> None:
    file = saved(tmp_path / "scan.npz", slices(2))
    reconstruct_file(file, tmp_path / "out", model=PnPilot(smoother))
    again = reconstruct_file(file, tmp_path / "out", model=PnPilot(smoother, sigma_n=0.02))
    assert not again.again


def test_unknown_formats_and_steps_are_refused_first(tmp_path: Path, model: PnPilot) -> None:
    with pytest.raises(UnknownName, match="unknown writer 'jpeg'"):
        reconstruct_file(tmp_path / "scan.npz", tmp_path / "out", formats=["jpeg"], model=model)
    assert not (tmp_path / "out").exists()
    with pytest.raises(UnknownName, match=r"unknown step 'denoising'; known: .*oversampling"):
        Options(without=frozenset({"denoising"}))


def anonymous_memory() -> int:
    """Bytes of this process that are not parts of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("RssAnon")))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_memory_does_not_grow_with_the_file(tmp_path: Path, smoother: Denoiser) -> None:
    """40 slices have 84 MB of k-space, and as much of images; none of that piles up."""
    from pnpilot.policies import build_policy

    quick = build_policy("schedule", build_solver("admm", frozenset({"prox"})), iterations=1)
    one, count = slices(1, height=512, width=512)[0, 0], 40
    kspace = np.lib.format.open_memmap(tmp_path / "scan.npy", "w+", np.complex64, (count, 512, 512))
    for number in range(count):
        kspace[number] = one
    kspace.flush()
    del kspace
    weighed: list[int] = []

    class Weighing(Counting):
        def tick(self, images: float) -> None:
            weighed.append(anonymous_memory())

    reconstruct_file(
        tmp_path / "scan.npy",
        tmp_path / "out",
        model=PnPilot(smoother, policy=quick, real=False),
        room=2,
        options=Options(axes=("slice", "y", "x")),
        watch=Weighing(),
    )
    half = len(weighed) // 2
    # What piled up in the second half alone would be 42 MB of k-space, and as much of images.
    assert max(weighed[half:]) - max(weighed[:half]) < 30e6


def test_steps_and_stored_problem_have_the_images(model: PnPilot) -> None:
    (image,) = single_coils(1)
    *_, step = model.steps(*batch([image]))
    assert isinstance(step.image, Tensor)
    assert len(step.problem) == 1
