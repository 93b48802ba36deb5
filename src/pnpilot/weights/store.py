"""Reading and writing `NAME.safetensors` with its card `NAME.json`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from ..errors import BadInput, BadWeights, first_line
from ..io.files import read_json, write_atomically, write_json

LARGEST_CARD = 1_000_000
"""Bytes; a card that training writes has a few thousand."""
LARGEST_HEADER = 1_000_000
"""Bytes by which a weight file may be larger than the numbers in it: names and shapes."""


def weights_folder() -> Path:
    """Where the package keeps its weights."""
    return Path(__file__).parent


def has_weights(name: str, folder: Path | None = None) -> bool:
    """Whether a card of that name exists."""
    return ((folder or weights_folder()) / f"{name}.json").is_file()


def shipped_weights(pattern: str) -> list[str]:
    """Names of the cards in the package that match."""
    return sorted(path.stem for path in weights_folder().glob(f"{pattern}.json"))


def read_card(name: str, folder: Path | None = None) -> dict[str, Any]:
    """The card: recipe, data, seed, sha256, scores."""
    path = (folder or weights_folder()) / f"{name}.json"
    try:
        card = read_json(path, "weight card", LARGEST_CARD)
    except BadInput as error:
        raise BadWeights(str(error)) from error
    if not isinstance(card, dict):
        raise BadWeights(f"{path} is not a readable weight card: it is a {type(card).__name__}, not an object")
    if not isinstance(card.get("sha256"), str):
        raise BadWeights(f"{path} is not a readable weight card: its sha256 is no text")
    return card


def load_weights(module: nn.Module, name: str, folder: Path | None = None) -> dict[str, Any]:
    """Fill `module` with the weights of that name after checking them against their card; return the card."""
    path = (folder or weights_folder()) / f"{name}.safetensors"
    card = read_card(name, folder)
    data = _bytes_for(module, path)
    digest = hashlib.sha256(data).hexdigest()
    if digest != card["sha256"]:
        raise BadWeights(
            f"{path} is not the file its card describes: sha256 {digest[:12]}…, card {card['sha256'][:12]}…"
        )
    try:
        tensors = load(data)
    except (SafetensorError, LookupError, ValueError, TypeError, RuntimeError) as error:
        raise BadWeights(f"{path} is not a readable safetensors file: {first_line(error)}") from error
    if misfit := _misfit(module.state_dict(), tensors):
        raise BadWeights(f"{path} does not fit {type(module).__name__}: {misfit}")
    module.load_state_dict(tensors)
    return card


def _bytes_for(module: nn.Module, path: Path) -> bytes:
    """The content of a weight file, unless it has more than the module can use."""
    most = sum(value.numel() * value.element_size() for value in module.state_dict().values()) + LARGEST_HEADER
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise BadWeights(f"cannot read the weights {path}: {error.strerror}") from error
    if len(data) > most:
        raise BadWeights(f"{path} does not fit {type(module).__name__}: it has more than {most / 1e6:.1f} MB")
    return data


def _misfit(wanted: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> str | None:
    """The first thing that is wrong with the tensors of a file."""
    for name, value in wanted.items():
        if name not in found:
            return f"it has no {name!r}"
        if found[name].shape != value.shape:
            return f"its {name!r} is of shape {tuple(found[name].shape)} in place of {tuple(value.shape)}"
        if found[name].is_complex():
            return f"its {name!r} is complex"
    return next((f"it has {name!r}, which has no place" for name in found if name not in wanted), None)


def save_weights(module: nn.Module, name: str, folder: Path, card: dict[str, Any]) -> Path:
    """Write the weights as fp16 and their card; return the weight file."""
    kept = {key for key, _ in module.named_buffers()}  # statistics and counters may exceed the range of fp16
    tensors = {
        key: value.detach().to("cpu", value.dtype if key in kept else torch.float16).contiguous()
        for key, value in module.state_dict().items()
    }
    broken = [key for key, value in tensors.items() if value.is_floating_point() and not torch.isfinite(value).all()]
    if broken:
        raise BadWeights(f"{broken[0]!r} of {name!r} is not finite: training diverged, and no weights were written")
    data = save(tensors)
    path = folder / f"{name}.safetensors"
    write_atomically(path, data)
    card = {**card, "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    write_json(path.with_suffix(".json"), card)
    return path
