"""Training state in one safetensors file; a kill at any moment leaves a usable one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from ..errors import BadInput, first_line, require
from ..io.files import write_atomically


def save_checkpoint(path: Path, modules: dict[str, Any], progress: dict[str, Any]) -> None:
    """Write the state of networks, optimisers and generators with the numbers that say how far training is."""
    tensors: dict[str, Tensor] = {}
    for name, module in modules.items():
        for key, value in _state(module).items():
            tensors[f"{name}/{key}"] = value.detach().cpu().contiguous()
    write_atomically(path, save(tensors, metadata={"progress": json.dumps(progress)}))


def load_checkpoint(path: Path, modules: dict[str, Any], expected: dict[str, Any] | None = None) -> dict[str, Any]:
    """Restore what `save_checkpoint` wrote and return its numbers; refuse those of a run with other arguments."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
            progress = json.loads(file.metadata()["progress"])
        same_run = expected is None or progress["args"] == expected
        for name, module in modules.items() if same_run else ():
            prefix = f"{name}/"
            _restore(module, {key[len(prefix) :]: value for key, value in tensors.items() if key.startswith(prefix)})
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = first_line(error)
        raise BadInput(f"{path} is not a readable checkpoint ({reason}); delete it to start anew") from error
    require(same_run, f"{path} belongs to a run with other settings; choose another folder or delete it")
    return progress


def _state(module: Any) -> dict[str, Tensor]:
    if isinstance(module, nn.Module):
        return module.state_dict()
    if isinstance(module, torch.optim.Optimizer):
        moments = module.state_dict()["state"]
        return {f"{index}.{key}": value for index, entry in moments.items() for key, value in entry.items()}
    if isinstance(module, torch.Generator):
        return {"state": module.get_state()}
    raise TypeError(f"cannot save a {type(module).__name__}")


def _restore(module: Any, tensors: dict[str, Tensor]) -> None:
    if isinstance(module, nn.Module):
        module.load_state_dict(tensors)
    elif isinstance(module, torch.optim.Optimizer):
        state = module.state_dict()
        for key, value in tensors.items():
            index, entry = key.split(".")
            state["state"].setdefault(int(index), {})[entry] = value
        module.load_state_dict(state)
        for parameter, moments in module.state.items():
            for entry, value in moments.items():
                if value.shape == parameter.shape:  # fused optimisers want the parameter's own memory layout
                    moments[entry] = torch.empty_like(parameter).copy_(value)
    else:
        module.set_state(tensors["state"])
