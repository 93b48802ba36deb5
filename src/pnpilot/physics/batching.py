"""Join operators into one for a batch, and select parts of such a batch: exactly, or with a refusal.

deepinv keeps the parameters of an operator in buffers (masks, kernels, noise levels) whose first axis may be the batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import torch
from deepinv.physics import NoiseModel, Physics
from torch import Tensor, nn

from ..errors import Incompatible

ROUNDING = 1e-4
"""Largest difference, relative to the data, between one operator for all images and one operator for each."""


def joined(operators: Sequence[Physics], images: Tensor, clean: Sequence[Tensor]) -> Physics:
    """One physics for a batch of images; `clean` are their data without noise, by each image's own operator.

    Buffers that differ are stacked. What cannot be stacked, or would measure something else, is refused.
    """
    first = operators[0]
    for other in operators[1:]:
        if difference := _difference(first, other):
            raise _refusal(first, f"their {difference} differs")
    stacks = {}
    for name, tensors in _buffers(operators):
        if any(not torch.equal(tensors[0], tensor) for tensor in tensors[1:]):
            stacks[name] = _stacked(first, name, tensors)
    if not stacks:
        physics = first
    else:
        physics = copied(first)
        _replace_buffers(physics, stacks)
    if not _agree(physics.A(images), clean):
        raise _refusal(first, "together they would measure something else than one by one")
    return physics


def selected(physics: Physics, index: Tensor, batch: int) -> Physics:
    """The physics of the images at these positions of a batch; the same one where all images share it."""
    own = {name: buffer[index.to(buffer.device)] for name, buffer in _named(physics) if _per_image(name, buffer, batch)}
    if not own:
        return physics
    chosen = copied(physics)
    _replace_buffers(chosen, own)
    return chosen


def copied(physics: Physics) -> Physics:
    """An operator of its own, to be moved or changed."""
    copy = _cloned(physics)
    for part in copy.modules():
        if hasattr(part, "_auto_grad_adjoint_fn"):  # deepinv's Tomography keeps an adjoint that belongs to the original
            part._auto_grad_adjoint_fn = None
    return copy


def _cloned(physics: Physics) -> Physics:
    """As deepinv's clone, which looks for random generators in all that can be reached, for a second and longer."""
    values = [value for part in physics.modules() for value in vars(part).values()]
    memo = {id(value): _twin(value) for value in values if isinstance(value, torch.Generator)}
    try:
        return deepcopy(physics, memo)
    except TypeError:  # there is one elsewhere
        return physics.clone()


def _twin(generator: torch.Generator) -> torch.Generator:
    twin = torch.Generator(generator.device)
    twin.set_state(generator.get_state())
    return twin


def divided(physics: Physics, images: Tensor) -> bool:
    """Whether the images of a batch (B, ...) have operators of their own, which `selected` finds.

    Refuses a physics whose parts would be another operator: one that keeps what differs where no buffer shows it.
    """
    if len(images) == 1:
        return True
    order = torch.arange(len(images), device=images.device).roll(1)
    turned = physics.A(images)[order]
    # A buffer that all images share may happen to have as many entries as there are images.
    for own in (True, False):
        part = selected(physics, order, len(images)) if own else physics
        with contextlib.suppress(RuntimeError, ValueError, IndexError):
            if _agree(part.A(images[order]), [turned]):
                return own
    raise Incompatible(
        f"parts of this batch would get another {type(physics).__name__}: what differs between images must be a buffer "
        "with the batch as its first axis. Give it one image at a time"
    )


def _per_image(name: str, buffer: Tensor, batch: int) -> bool:
    # Masks, maps and kernels have the batch before their own axes; of buffers with fewer axes, only noise levels do.
    levels = name.startswith("noise_model.") and buffer.ndim >= 1
    return batch > 1 and (buffer.ndim >= 4 or levels) and buffer.shape[0] == batch


def _named(physics: Physics) -> Iterator[tuple[str, Tensor]]:
    # deepinv also keeps the initial state of a random generator as a buffer.
    yield from ((name, buffer) for name, buffer in physics.named_buffers() if not name.endswith("random_state"))


def _buffers(operators: Sequence[Physics]) -> Iterator[tuple[str, list[Tensor]]]:
    columns = [dict(_named(operator)) for operator in operators]
    for name in columns[0]:
        yield name, [column[name] for column in columns]


def _stacked(physics: Physics, name: str, tensors: Sequence[Tensor]) -> Tensor:
    shapes = {tuple(tensor.shape) for tensor in tensors}
    if len(shapes) == 1:
        if name.startswith("noise_model.") and tensors[0].numel() == 1:
            return torch.cat([tensor.reshape(1) for tensor in tensors])
        if tensors[0].ndim >= 4 and tensors[0].shape[0] == 1:
            return torch.cat(list(tensors))
    raise _refusal(physics, f"the shapes of their {name} are {', '.join(map(str, sorted(shapes)))}")


def _replace_buffers(physics: Physics, buffers: dict[str, Tensor]) -> None:
    for path, value in buffers.items():
        *parents, name = path.split(".")
        module: Any = physics
        for parent in parents:
            module = getattr(module, parent)
        setattr(module, name, value)


def _difference(one: nn.Module, other: nn.Module) -> str | None:
    """What keeps two operators from being joined, apart from their buffers."""
    if type(one) is not type(other):
        return "type"
    if dict(one.named_buffers()).keys() != dict(other.named_buffers()).keys():
        return "set of parameters"
    for name, value in vars(one).items():
        plain = isinstance(value, bool | int | float | str | tuple | list | torch.Size)
        if plain and not name.startswith("_") and value != vars(other).get(name):
            return name
        if isinstance(value, Tensor) and not _same(value, vars(other).get(name)):
            return name
    for name, child in one.named_children():
        if difference := _difference(child, getattr(other, name)):
            return f"{name} {difference}" if not isinstance(child, NoiseModel) else f"noise model's {difference}"
    return None


def _same(one: Tensor, other: Any) -> bool:
    return isinstance(other, Tensor) and one.shape == other.shape and torch.equal(one, other)


def _agree(measured: Tensor, clean: Sequence[Tensor]) -> bool:
    if any(one.shape[1:] != measured.shape[1:] for one in clean):
        return False
    alone = torch.cat(list(clean))
    return bool((measured - alone).abs().max() <= ROUNDING * alone.abs().max())


def _refusal(physics: Physics, why: str) -> Incompatible:
    return Incompatible(
        f"these {type(physics).__name__} operators cannot share a batch: {why}. Put images with the same operator "
        "into one batch"
    )
