"""Baselines outside the package: their constants and weights are kept beside their file; ours in the package."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pnpilot import baselines
from pnpilot.baselines import BASELINES, build_baseline
from pnpilot.baselines._searched import Searched, parameters_file
from pnpilot.baselines._unrolled import Unrolled
from pnpilot.errors import BadInput
from pnpilot.metrics import psnr
from pnpilot.tasks.csmri import CSMRI
from pnpilot.weights import weights_folder
from tests.cli import Said
from tests.conftest import block_pictures, phantom

GIVEN = [
    name
    for name, kind in ((name, BASELINES[name]) for name in BASELINES)
    if issubclass(kind, Searched | Unrolled) and kind.__module__.startswith("pnpilot.")
]
"""Methods of the package that were trained or searched."""
MINE = """
import torch
from pnpilot.baselines._mri import MRIBaseline
from pnpilot.baselines._searched import Searched
from pnpilot.baselines._unrolled import Unrolled, UnrolledNetwork
from pnpilot.baselines.base import BASELINES
from pnpilot.problems.masked_fourier import MaskedFourier


@BASELINES.register("my-search")
class Dimmed(Searched[MaskedFourier], MRIBaseline):
    \"\"\"The zero-filled image, dimmed.\"\"\"

    reference = "nobody"
    grid = {"share": (0.1, 0.9)}

    def solve(self, problem, *, share):
        return share * problem.x0().real


class Network(UnrolledNetwork):
    def __init__(self):
        super().__init__()
        self.share = torch.nn.Parameter(torch.tensor([0.5]))

    def forward(self, problem):
        return self.share * problem.x0().real

    def loss(self, problem, truth):
        return (self(problem) - truth).square().mean()


@BASELINES.register("my-network")
class Learnt(Unrolled):
    \"\"\"The zero-filled image, dimmed as it was learnt.\"\"\"

    reference = "nobody"
    network_class = Network
    batch, rate = 2, 0.01
"""


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return block_pictures(tmp_path / "images", 5, 4)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file with two methods in a folder of the user's; what it registers is forgotten afterwards."""
    monkeypatch.setattr(BASELINES, "_entries", dict(BASELINES._entries))
    monkeypatch.setattr("pnpilot.plugins._loaded", set())
    monkeypatch.setenv("PNPILOT_WITH", "")
    file = tmp_path / "mine" / "my_methods.py"
    file.parent.mkdir()
    file.write_text(MINE)
    yield file
    sys.modules.pop("pnpilot_with_my_methods", None)


@pytest.mark.usefixtures("looks")
@pytest.mark.parametrize(
    ("name", "kept_in", "files"),
    [
        ("my-search", "parameters", ["my-search.json"]),
        ("my-network", "weights", ["my-network.json", "my-network.safetensors"]),
    ],
)
def test_a_method_outside_the_package_runs_once_its_files_are_beside_it(
    name: str, kept_in: str, files: list[str], mine: Path, images: Path, tmp_path: Path, say: Callable[..., Said]
) -> None:
    """From the file to an image, by the commands that the messages name."""
    home, out = mine.parent / kept_in, tmp_path / "out"
    command = ["train", "baseline", name, "--with", mine, "--smoke", "--data", images, "--out", out]
    said = say(*command, *(["--workers", "1"] if name == "my-search" else ["--minutes", "0.1"]))
    assert said.code == 0, said.err
    with pytest.raises(BadInput, match=f"^{name} has no .* yet: pnpilot train baseline {name} .* then move ") as caught:
        build_baseline(name)
    assert str(caught.value).endswith(f" to {home}")
    if name == "my-search":
        assert f"constants in {out / files[0]}; those in use are in {home / files[0]}" in said.err
    home.mkdir()
    for file in files:
        assert file in str(caught.value)
        (out / file).rename(home / file)
    truth = phantom(32, 32)
    image = build_baseline(name)(*CSMRI().simulate(truth, CSMRI.setting(2, 5)))
    assert psnr(image[:, :1], truth).min() > 15
    made_with, written = build_baseline(name).made_with(), json.loads((home / files[0]).read_text())
    if name == "my-search":
        assert made_with == {label: own["constants"] for label, own in written["settings"].items()}
    else:
        assert made_with == written["sha256"]


@pytest.mark.parametrize("name", GIVEN)
def test_what_ours_were_given_is_in_the_package(name: str) -> None:
    kind = BASELINES[name]
    if issubclass(kind, Unrolled):
        assert kind.folder() == weights_folder()
    else:
        assert parameters_file(name) == Path(baselines.__file__).parent / "parameters" / f"{name}.json"
