"""Damaged or false cards and weight files are refused before anything is built from them."""

from __future__ import annotations

import hashlib
import json
import struct
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import nn

from pnpilot.errors import BadWeights
from pnpilot.policies._card import LARGEST
from pnpilot.policies.learned import Learned
from pnpilot.solvers import build_solver
from pnpilot.weights import load_weights, read_card, save_weights, shipped_weights

NAME = "learned-csmri-admm"
SHAPE = {"iterations": 6, "per_decision": 2, "width": 8, "observation": "universal", "channels": 6}
CARD = {"method": "learned", "task": "csmri", "solver": "admm", "denoiser": "compact", "shape": SHAPE}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained policy as training writes it."""
    home = tmp_path_factory.mktemp("policy")
    save_weights(Learned(build_solver("admm"), **SHAPE).network, NAME, home, CARD)  # type: ignore[arg-type]
    return home


def load_with(card: Any, folder: Path) -> Learned:
    """Load its weights with another card."""
    with tempfile.TemporaryDirectory() as other:
        (Path(other) / f"{NAME}.safetensors").symlink_to(folder / f"{NAME}.safetensors")
        (Path(other) / f"{NAME}.json").write_bytes(card if isinstance(card, bytes) else json.dumps(card).encode())
        return Learned.load(NAME, Path(other))


def changed(folder: Path, **changes: Any) -> dict[str, Any]:
    return {**read_card(NAME, folder), **changes}


def reshaped(folder: Path, **changes: Any) -> dict[str, Any]:
    return changed(folder, shape={**SHAPE, **changes})


def test_the_card_of_these_tests_is_a_good_one(folder: Path) -> None:
    assert load_with(changed(folder), folder).decisions == 3


@pytest.mark.parametrize(
    "card", [b"", b"\xff\xfe", b"5", b"null", b'"text"', b"[1, 2]", b"{}", b'{"sha256": 5}', b"[" * 100_000]
)
def test_what_is_no_card_is_refused(card: bytes, folder: Path) -> None:
    with pytest.raises(BadWeights, match="is not a readable weight card: "):
        load_with(card, folder)


def test_a_huge_card_is_not_read(folder: Path) -> None:
    with pytest.raises(BadWeights, match="it has more than 1 MB"):
        load_with(changed(folder, notes="x" * 1_000_000), folder)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iterations": 30.0}, "iterations must be a whole number from 1 to 1000"),
        ({"iterations": 10**9, "per_decision": 10**9}, "iterations must be a whole number from 1 to 1000"),
        ({"iterations": 10**9}, "iterations must be a whole number from 1 to 1000"),
        ({"iterations": True}, "iterations must be a whole number"),
        ({"iterations": 7}, "7 iterations do not divide into decisions of 2"),
        ({"per_decision": 10**6}, "per_decision must be a whole number from 1 to 100"),
        ({"per_decision": "5"}, "per_decision must be a whole number"),
        ({"width": 8192}, "width must be a whole number from 1 to 256"),
        ({"width": 12}, "width must be a multiple of 8, got 12"),
        ({"width": None}, "width must be a whole number"),
        ({"channels": 10**6}, "channels must be a whole number from 1 to 1000"),
        ({"channels": -3}, "channels must be a whole number"),
        ({"observation": ["universal"]}, "observation must be one of watched, probed, universal, paper"),
        ({"observation": "luck"}, "observation must be one of"),
        ({"colour": "red"}, "its shape must have iterations, per_decision, width, channels, observation"),
    ],
)
def test_a_shape_is_refused_before_a_network_is_built(
    changes: dict[str, Any], reason: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pnpilot.policies.learned.Actor", lambda *_, **__: pytest.fail("built"))
    with pytest.raises(BadWeights, match=f"the card of '{NAME}' does not describe a policy: {reason}"):
        load_with(reshaped(folder, **changes), folder)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"method": "fixed"}, "its method is 'fixed', not 'learned'"),
        ({"method": None}, "its method is no name"),
        ({"solver": ["admm"]}, "its solver is no name"),
        ({"solver": "x" * 1000}, "its solver is no name"),
        ({"solver": "magic"}, "unknown solver 'magic'"),
        ({"task": {}}, "its task is no name"),
        ({"denoiser": ""}, "its denoiser is no name"),
        ({"denoiser_sha256": 5}, "its denoiser_sha256 is no text"),
        ({"shape": [30, 5]}, "its shape must have"),
        ({"real_only": "yes"}, "its real_only is neither true nor false"),
    ],
)
def test_a_card_names_its_parts(changes: dict[str, Any], reason: str, folder: Path) -> None:
    with pytest.raises(BadWeights, match=f"does not describe a policy: {reason}"):
        load_with(changed(folder, **changes), folder)


def test_channels_that_the_weights_do_not_have_are_refused(folder: Path) -> None:
    with pytest.raises(BadWeights, match=r"does not fit Actor: its .* is of shape"):
        load_with(reshaped(folder, channels=7), folder)


def test_weights_that_are_not_finite_are_not_written(tmp_path: Path) -> None:
    layer = nn.Linear(2, 2)
    layer.weight.data[0, 0] = 1e30  # more than fp16 holds
    with pytest.raises(BadWeights, match="'weight' of 'net' is not finite: training diverged"):
        save_weights(layer, "net", tmp_path, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", shipped_weights("learned-*"))
def test_shipped_policies_keep_well_within_the_limits(name: str) -> None:
    shape = read_card(name)["shape"]
    assert all(2 * shape[field] <= largest for field, largest in LARGEST.items())


scalars = some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=8)
anything = some.recursive(
    scalars, lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3)
)


@settings(max_examples=50, deadline=None, derandomize=True, database=None)
@given(
    card=some.dictionaries(some.sampled_from([*CARD, "sha256", "denoiser_sha256"]), anything, max_size=3),
    shape=some.dictionaries(some.sampled_from([*SHAPE, "more"]), anything, max_size=2),
    whole=some.booleans(),
    other=anything,
)
def test_any_json_is_a_policy_or_bad_weights(
    card: dict[str, Any], shape: dict[str, Any], whole: bool, other: Any, folder: Path
) -> None:
    content = {**reshaped(folder, **shape), **card} if whole else other
    try:
        policy = load_with(content, folder)
    except BadWeights as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert {**SHAPE, **shape} == SHAPE
        assert policy.solver.name == "admm"


def file_with(header: Any, data: bytes, folder: Path, length: int | None = None) -> None:
    """A weight file with this header, and a card that has its sha256."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    content = struct.pack("<Q", len(text) if length is None else length) + text + data
    (folder / "net.safetensors").write_bytes(content)
    (folder / "net.json").write_text(json.dumps({"sha256": hashlib.sha256(content).hexdigest()}))


def entry(kind: str = "F16", shape: Any = (1, 2), offsets: Any = (0, 4)) -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": offsets}


BIAS = entry(shape=[1], offsets=[4, 6])


def test_a_true_header_is_read(tmp_path: Path) -> None:
    file_with({"weight": entry(), "bias": BIAS}, bytes(6), tmp_path)
    network = nn.Linear(2, 1)
    load_weights(network, "net", tmp_path)
    assert not network.weight.any()


@pytest.mark.parametrize(
    ("header", "length"),
    [
        ({"weight": entry(), "bias": BIAS}, 2**60),
        ({"weight": entry(), "bias": BIAS}, 5),
        ({"weight": entry(offsets=[0, 2**40]), "bias": BIAS}, None),
        ({"weight": entry(offsets=[4, 0]), "bias": BIAS}, None),
        ({"weight": entry(shape=[2**62, 2**62]), "bias": BIAS}, None),
        ({"weight": entry(shape=[1, 3]), "bias": BIAS}, None),
        ({"weight": entry(shape=[2, 1]), "bias": BIAS}, None),
        ({"weight": entry(shape=[-1, 2]), "bias": BIAS}, None),
        ({"weight": entry("U8", [1, 4]), "bias": BIAS}, None),
        ({"weight": entry("F8_E8M0", [1, 4]), "bias": BIAS}, None),
        ({"weight": entry("F4", [1, 8]), "bias": BIAS}, None),
        ({"weight": entry("??"), "bias": BIAS}, None),
        ({"weight": entry(), "luck": BIAS}, None),
        ({"weight": entry()}, None),
        ({"weight": 5}, None),
        ([1, 2], None),
        (b"[" * 5000, None),
        (b"", None),
    ],
)
def test_a_header_that_lies_is_refused(header: Any, length: int | None, tmp_path: Path) -> None:
    file_with(header, bytes(6), tmp_path, length)
    with pytest.raises(
        BadWeights, match=r"net\.safetensors (does not fit Linear|is not a readable safetensors file): ."
    ) as caught:
        load_weights(nn.Linear(2, 1), "net", tmp_path)
    assert len(str(caught.value).splitlines()) == 1


def test_weights_that_do_not_fit_say_where(tmp_path: Path) -> None:
    save_weights(nn.Linear(2, 3), "net", tmp_path, {})
    with pytest.raises(BadWeights, match=r"its 'weight' is of shape \(3, 2\) in place of \(1, 2\)"):
        load_weights(nn.Linear(2, 1), "net", tmp_path)
    with pytest.raises(BadWeights, match="it has 'bias', which has no place"):
        load_weights(nn.Linear(2, 3, bias=False), "net", tmp_path)
    save_weights(nn.Linear(2, 3, bias=False), "net", tmp_path, {})
    with pytest.raises(BadWeights, match="it has no 'bias'"):
        load_weights(nn.Linear(2, 3), "net", tmp_path)


def test_a_weight_file_is_not_read_beyond_what_its_network_holds(tmp_path: Path) -> None:
    save_weights(nn.Linear(2, 1), "net", tmp_path, {})
    with (tmp_path / "net.safetensors").open("r+b") as file:
        file.truncate(2**40)  # a sparse file: it takes no room
    with pytest.raises(BadWeights, match=r"does not fit Linear: it has more than 1\.0 MB"):
        load_weights(nn.Linear(2, 1), "net", tmp_path)
