"""The report of a run: what is on the page, that it needs nothing but itself, and that a browser shows it."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import re
import shutil
import signal
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pnpilot.report import Content, curves, page, panels, write_report
from pnpilot.report.page import POLICY

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium")
EVIL = "<script>alert(1)</script>"
VOID = {"meta", "img", "link", "br", "hr", "input"}


def image(index: int, **changes: Any) -> Any:
    found = {
        "index": index,
        "name": f"slice {index}",
        "noise": 0.01234,
        "peak": 3.4e-5,
        "kept": 0.29,
        "iterations": 3,
        "stopped": "at the last iteration",
        "distance": 1.02,
        "calibration": "24×24",
        "warnings": [],
        "parameters": {"sigma": [0.1, 0.05, 0.025], "mu": [0.1, 0.2, 0.4]},
        "solver": "admm",
        "policy": "schedule",
        "empty": False,
    }
    return {**found, **changes}


def content(*images: Any, **changes: Any) -> Any:
    found = {
        "file": "scan.h5",
        "command": "pnpilot reconstruct scan.h5 --out out",
        "created": "2026-01-02 03:04",
        "versions": {"pnpilot": "0.1.2", "torch": "2.9.8", "deepinv": "0.5.7", "python": "3.10.11"},
        "device": "CPU",
        "read": {"reader": "fastmri", "axes": {"slice": 12, "coil": 8, "y": 640, "x": 320}, "notes": ["A note."]},
        "prepared": [
            {"step": "whitening", "done": True, "said": "noise of 8 coils whitened"},
            {"step": "coil compression", "done": False, "said": "8 coils are not more than 16"},
        ],
        "images": list(images or [image(0)]),
        "warnings": [],
        "seconds": {"reading": 0.31, "maps": 2.2},
        "written": ["out/scan.h5", "out/scan.png"],
    }
    return {**found, **changes}


def picture(seed: int = 0) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 255, (8, 24), dtype=np.uint8)).save(buffer, "png")
    return buffer.getvalue()


class Parsed(HTMLParser):
    """Follows open tags, and keeps attributes and visible text; a tag closed out of turn is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = self.style = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            self.style += data
        else:
            self.text += data

    def named(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag in tags]


def test_everything_of_the_content_is_on_the_page() -> None:
    images = image(0), image(1, warnings=["it ends far off"]), image(2, empty=True, noise=None, distance=None)
    text = Parsed(page(content(*images, warnings=["no noise scan"]), [("slice 1", picture())])).text
    for told in (
        *("scan.h5", "2026-01-02 03:04", "CPU", "2 images reconstructed, 1 had nothing to reconstruct"),
        *("2 warnings.", "no noise scan", "slice 1: it ends far off", "reading: fastmri", "A note."),
        *("slice 12 × coil 8 × y 640 × x 320", "whitening: noise of 8 coils whitened"),
        *("coil compression, left out: 8 coils are not more than 16", "slice 1 ⚠", "0.0123", "3.40e-05", "29%"),
        *("1.02", "at the last iteration", "nothing to reconstruct", "calibration 24×24, solver admm, policy schedule"),
        *("0.3 s", "2.2 s", "2.5 s", "out/scan.png", "0.1.2", "2.9.8", "0.5.7", "3.10.11"),
        *("pnpilot reconstruct scan.h5 --out out", '"parameters"', "[0.1, 0.05, 0.025]"),
    ):
        assert told in text, told


def test_the_json_on_the_page_is_the_content() -> None:
    own = content(image(0, name="a [b], {c}"), image(1))
    last = page(own).split("<pre>")[-1].split("</pre>")[0]
    assert json.loads(Parsed(f"<pre>{last}</pre>").text) == own


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (content(), "1 image reconstructed; no warnings."),
        (content(image(0), image(1), warnings=["once"]), "2 images reconstructed; 1 warning."),
        (content(image(0, empty=True)), "No image was reconstructed, 1 had nothing to reconstruct; no warnings."),
        ({**content(), "images": []}, "No image was reconstructed; no warnings."),
    ],
)
def test_the_verdict(own: Content, said: str) -> None:
    shown = Parsed(page(own)).text
    assert said in shown
    assert ("Warnings" in shown) == bool(own["warnings"])


def test_a_warning_that_images_share_is_said_once() -> None:
    images = [image(index, warnings=["shared"] * (index < 7)) for index in range(9)]
    shown = page(content(*images)).split("<main>")[1].split("</section>")[0]
    assert "slice 0, slice 1, slice 2, slice 3, slice 4 and 2 more</b>: shared" in shown
    assert shown.count("<li>") == 1


def test_text_from_outside_is_never_markup() -> None:
    evil = f'"{EVIL}"><img src=x onerror=alert(1)>\x00\u202e'
    own = copy.deepcopy(content(image(0, warnings=[evil]), image(1)))

    def spoil(value: Any) -> Any:
        if isinstance(value, dict):
            known = {"images", "read", "prepared", "parameters", "sigma", "mu"} | set(own) | set(own["read"])
            known |= set(own["images"][0]) | set(own["prepared"][0])
            return {key if key in known else evil + key: spoil(part) for key, part in value.items()}
        return [spoil(part) for part in value] if isinstance(value, list) else evil if value.__class__ is str else value

    shown = page(spoil(own), [(evil, picture())], picture())
    parsed = Parsed(shown)
    assert parsed.named("script") == []
    assert len(parsed.named("img")) == 2
    assert not any(name.startswith("on") for _, attributes in parsed.tags for name in attributes)
    assert EVIL in parsed.text
    assert not {"\x00", "\u202e"} & set(shown)


def test_nothing_is_fetched() -> None:
    parsed = Parsed(page(content(), [("slice 0", picture())], picture()))
    assert not parsed.named("link", "script", "iframe", "object", "base")
    for _, attributes in parsed.tags:
        for name in ("src", "href", "srcset", "data", "action", "background"):
            assert (attributes.get(name) or "data:").startswith("data:")
        assert "style" not in attributes
    assert parsed.style
    assert "url(" not in parsed.style
    assert "@import" not in parsed.style
    assert {"content": POLICY, "http-equiv": "Content-Security-Policy"} in parsed.named("meta")


def test_the_page_of_thousands_of_images_is_small(tmp_path: Path) -> None:
    values = np.random.default_rng(0).uniform(0.01, 1, 30).tolist()
    chosen = {"iterations": 30, "parameters": {"sigma": values, "mu": values}}
    images = [image(index, warnings=[f"warning {index}"], **chosen) for index in range(5000)]
    files = write_report(tmp_path, "scan", content(*images), [(f"picture {n}", picture(n)) for n in range(9)])
    assert files == [tmp_path / "scan.json", tmp_path / "scan.html"]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    assert len(json.loads(files[0].read_text())["images"]) == 5000
    assert files[1].stat().st_size < 2e6
    parsed = Parsed(files[1].read_text())
    for told in ("4800 more images left out", "5000 warnings", "4980 more warnings", "with the first 200 images"):
        assert told in parsed.text
    assert len(parsed.named("tr")) == 201
    assert len(parsed.named("img")) == 6 + 1


def test_what_json_cannot_say_is_written_as_nothing(tmp_path: Path) -> None:
    name = os.fsdecode(b"scan\xff.h5")
    written, shown = write_report(tmp_path, "scan", content(image(0, distance=float("nan")), file=name), [])
    told = json.loads(written.read_text(), parse_constant=pytest.fail)
    assert (told["file"], told["images"][0]["distance"]) == ("scan?.h5", None)
    assert "scan?.h5" in shown.read_text()


@pytest.mark.parametrize(("shape", "wide"), [((40, 40), 3.0), ((20, 60), 7.4), ((90, 30), 1.6)])
def test_panels_are_drawn_in_one_scale(shape: tuple[int, int], wide: float) -> None:
    result = np.zeros(shape, np.complex64)
    result[:, : shape[1] // 2] = 2j
    objection = np.zeros(shape)
    objection[0, 0] = np.nan
    with Image.open(io.BytesIO(panels(result / 2, result, objection))) as drawn:
        pixels = np.asarray(drawn.convert("RGBA"))
    assert pixels.shape[1] / pixels.shape[0] == pytest.approx(wide, rel=0.05)
    row = pixels[pixels.shape[0] // 2].astype(int)
    greys = {tuple(pixel[:3]) for pixel in row if pixel[3] == 255 and np.ptp(pixel[:3]) == 0}
    assert {(255,) * 3, (0,) * 3} <= greys
    assert greys & {(127,) * 3, (128,) * 3}  # the start, half as bright
    assert row[-1, 3] == 0


@pytest.mark.parametrize("solver", ["admm", "apg", "amp"])
def test_curves_are_drawn_whatever_the_values(solver: str) -> None:
    from pnpilot.solvers import SOLVERS

    own = image(0, solver=solver, parameters={name: [0.0, 0.0, 0.0] for name in SOLVERS[solver].params})
    with Image.open(io.BytesIO(curves({"$a{": own}))) as drawn:
        assert min(drawn.size) > 300


def opened(path: Path, width: int, profile: Path) -> tuple[str, list[str]]:
    """The page as Chromium understands it, and what it complains about."""
    assert CHROMIUM is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]
    options += ["--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr"]
    options += [f"--user-data-dir={profile}", f"--window-size={width},900", "--dump-dom", path.as_uri()]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"}
    with subprocess.Popen([CHROMIUM, *options], start_new_session=True, **pipes) as browser:
        try:
            shown, said = browser.communicate(timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(browser.pid, signal.SIGKILL)
    return shown, [line for line in said.splitlines() if "CONSOLE" in line]


LOOK = """<script>addEventListener("load", () => {
const sizes = [...document.images].map((image) => image.naturalWidth);
const page = document.documentElement;
document.body.dataset.found = JSON.stringify([sizes, page.scrollWidth - page.clientWidth, document.fonts.size]);
})</script></body>"""


@needs_chromium
@pytest.mark.parametrize("width", [500, 1300])
def test_a_browser_shows_it(width: int, tmp_path: Path) -> None:
    ramp = np.linspace(0, 1, 32 * 32).reshape(32, 32)
    images = [image(index, name=f"{EVIL} {index}", warnings=[EVIL + "long" * 60]) for index in range(3)]
    own = content(*images, file=f"{EVIL}{'name' * 30}.h5", command="pnpilot " + "x" * 200)
    _, written = write_report(tmp_path, "scan", own, [("slice 1", panels(ramp, ramp, 6 * ramp))])
    watched = written.read_text().replace("</body>", LOOK).replace("'none';", "'none'; script-src 'unsafe-inline';")
    written.write_text(watched)
    shown, complaints = opened(written, width, tmp_path / "profile")
    assert complaints == []
    found = re.search('data-found="([^"]*)"', shown)
    assert found is not None
    sizes, beyond, fonts = json.loads(found[1])
    assert len(sizes) == 2
    assert min(sizes) > 500
    assert (beyond, fonts) == (0, 0)  # nothing sticks out at the side
    assert shown.count("<script>") == 1


@needs_chromium
def test_a_browser_refuses_what_slipped_in(tmp_path: Path) -> None:
    """The page's own rules hold even for markup that nobody escaped, and complaints are seen."""
    path = tmp_path / "scan.html"
    slipped = '<script>document.title = "ran"</script><img src="http://example.com/x.png"></body>'
    path.write_text(page(content()).replace("</body>", slipped))
    shown, complaints = opened(path, 800, tmp_path / "profile")
    assert "<title>scan.h5 – PnPilot</title>" in shown
    assert len(complaints) == 2
    assert all("Content Security Policy" in line for line in complaints)
