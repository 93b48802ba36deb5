"""Reading and writing `NAME.safetensors` with its card `NAME.json`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from ..errors import BadWeights, first_line
from ..io.files import write_atomically


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
        card = json.loads(path.read_text())
        if not isinstance(card["sha256"], str):
            raise TypeError("its sha256 is no text")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadWeights(f"{path} is not a readable weight card with a sha256: {error}") from error
    return card


def load_weights(module: nn.Module, name: str, folder: Path | None = None) -> dict[str, Any]:
    """Fill `module` with the weights of that name after checking them against their card; return the card."""
    path = (folder or weights_folder()) / f"{name}.safetensors"
    card = read_card(name, folder)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadWeights(f"cannot read the weights {path}: {error.strerror}") from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != card["sha256"]:
        raise BadWeights(
            f"{path} is not the file its card describes: sha256 {digest[:12]}…, card {card['sha256'][:12]}…"
        )
    try:
        module.load_state_dict(load(data))
    except (SafetensorError, RuntimeError) as error:
        raise BadWeights(f"{path} does not fit {type(module).__name__}: {first_line(error)}") from error
    return card


def save_weights(module: nn.Module, name: str, folder: Path, card: dict[str, Any]) -> Path:
    """Write the weights as fp16 and their card; return the weight file."""
    kept = {key for key, _ in module.named_buffers()}  # statistics and counters: no size of theirs is sure to fit fp16
    tensors = {
        key: value.detach().to("cpu", value.dtype if key in kept else torch.float16).contiguous()
        for key, value in module.state_dict().items()
    }
    data = save(tensors)
    path = folder / f"{name}.safetensors"
    write_atomically(path, data)
    card = {**card, "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    write_atomically(path.with_suffix(".json"), (json.dumps(card, indent=2, ensure_ascii=False) + "\n").encode())
    return path
