"""Physics of several parts that equal one that problems know: stacks of operators, and MRI measured in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from deepinv.physics import (
    MRI,
    DynamicMRI,
    LinearPhysics,
    Physics,
    SaltPepperNoise,
    SequentialMRI,
    StackedLinearPhysics,
)
from deepinv.utils.mixins import MRIMixin
from torch import Tensor

from ..errors import Incompatible, first_line, require
from ..physics.stacked import side_by_side
from ..types import one_each, parts_of
from ._counts import Counted, counted, counts_photons
from ._data import UNFIT, checked_data, noise_in_picture, noise_of
from ._kspace import measures_like
from ._units import Hints

PRECISE = 0.01
"""Of parts with less noise than this share of the noisiest, none counts for more than another."""


def plain(y: Any, physics: Physics, hints: Hints) -> tuple[Any, Physics, Hints, list[str]]:
    """The same data, physics and hints in their plainest form, and what to tell of it."""
    if any(isinstance(part.noise_model, SaltPepperNoise) for part in parts_of_physics(physics)):
        raise Incompatible(
            "salt-and-pepper noise leaves nothing of the pixels that it hits: leave these out, as those that an "
            "Inpainting does not measure"
        )
    if isinstance(physics, StackedLinearPhysics):
        return _of_a_stack(y, physics, hints)
    if measures_like(SequentialMRI, physics):
        return *_of_turns(y, physics), hints, []
    if isinstance(physics, DynamicMRI):
        raise Incompatible(
            f"a film is not one image, and {type(physics).__name__} measures one: give its frames as a batch, "
            "MRI(mask=mask.transpose(1, 2).flatten(0, 1)) with y.transpose(1, 2).flatten(0, 1)"
        )
    return y, physics, hints, []


def _of_a_stack(y: Any, physics: StackedLinearPhysics, hints: Hints) -> tuple[Tensor, LinearPhysics, Hints, list[str]]:
    name, parts, data = type(physics).__name__, parts_of_physics(physics), parts_of(y)
    require(
        not isinstance(y, Tensor) and len(data) == len(parts),
        f"the {name} has {len(parts)} parts: give a TensorList with as many data",
    )
    data = [checked_data(one, f"part {index} of the data") for index, one in enumerate(data)]
    require(len({len(one) for one in data}) == 1, f"the parts hold {[len(one) for one in data]} images: give as many")
    for index, (part, one) in enumerate(zip(parts, data, strict=True)):
        _check_part(index, part, one)
    photons = {
        index: counted(data[index], part, hints.gain) for index, part in enumerate(parts) if counts_photons(part)
    }
    data = [photons[index].y if index in photons else one for index, one in enumerate(data)]
    levels = _levels(parts, data, photons, hints)
    given, known = _weighed_by(levels), ~levels.isnan()
    joint = side_by_side(parts, data, given)
    if photons and hints.sigma_n is None:
        joint.count_photons(*_variances(photons, given))
        hints = replace(hints, gain=None)
    elif bool(known.any(1).all()):
        hints = replace(hints, sigma_n=given.amin(1) * (levels.nan_to_num(nan=0.0) > 0).any(1))
    return joint.joined(data), joint, hints, _unknown_levels(known)


def parts_of_physics(physics: Physics) -> list[Any]:
    """The physics of a stack, or the one."""
    return list(physics.physics_list) if isinstance(physics, StackedLinearPhysics) else [physics]


def _check_part(index: int, part: Physics, y: Tensor) -> None:
    what = f"part {index} of the data, of shape {tuple(y.shape)}, does not fit the {type(part).__name__}"
    require(isinstance(part, LinearPhysics), f"part {index} of the stack, a {type(part).__name__}, is not linear")
    try:
        gives = tuple(part.A(part.A_adjoint(y)).shape)
    except UNFIT as error:
        require(False, f"{what}: {first_line(error)}")
    require(gives == tuple(y.shape), f"{what}: it gives {gives}")


def _levels(
    parts: Sequence[LinearPhysics], data: Sequence[Tensor], photons: Mapping[int, Counted], hints: Hints
) -> Tensor:
    """The noise level of each part (B, parts): told, declared, or as its data show it; NaN where neither is known."""
    told = hints.sigma_n if not isinstance(hints.sigma_n, str) else None
    columns = []
    for index, (part, y) in enumerate(zip(parts, data, strict=True)):
        level = noise_of(part) if told is None and hints.sigma_n is None else told
        light = photons.get(index)
        if level is not None:
            values = one_each(level, y.real.flatten(1)[:, 0], "noise levels")
            columns.append(values if light is None else values * light.scale)
        elif light is not None and hints.sigma_n is None:
            columns.append(light.level())
        elif isinstance(part, MRIMixin):  # k-space is not a picture
            columns.append(torch.full((len(y),), torch.nan, device=y.device))
        else:
            columns.append(noise_in_picture(y))
    return torch.stack(columns, 1)


def _weighed_by(levels: Tensor) -> Tensor:
    """The levels that parts count by (B, parts): those that are unknown as the least, and all alike without any."""
    known = ~levels.isnan()
    most = levels.nan_to_num(nan=0.0).amax(1, keepdim=True)
    least = levels.nan_to_num(nan=torch.inf).amin(1, keepdim=True)
    given = torch.where(known, levels, least).clamp_min(PRECISE * most)
    return torch.where(known.any(1, keepdim=True) & (most > 0), given, 1.0)


def _unknown_levels(known: Tensor) -> list[str]:
    """A warning where the levels of some parts are known (B, parts), and those of others are not."""
    some = known.any(1) & ~known.all(1)
    if not bool(some.any()):
        return []
    unknown = [str(index) for index in range(known.shape[1]) if not bool(known[some, index].all())]
    return [
        f"no noise level is known of part {' and '.join(unknown)} of the data: it counts as having the least; give "
        "every part of the stack a noise model"
    ]


def _variances(photons: Mapping[int, Counted], given: Tensor) -> tuple[Tensor, Tensor]:
    """Gain and σ of each part (B, parts); a part without photons has no gain, and all its noise in σ."""
    gains, sigmas = torch.zeros_like(given), given.clone()
    for index, light in photons.items():
        gains[:, index], sigmas[:, index] = light.gain.flatten(), light.sigma.flatten()
    return gains, sigmas


def _of_turns(y: Any, physics: SequentialMRI) -> tuple[Tensor, MRI]:
    """One scan for all turns: each sample of k-space is a mean of its repeats, whose noise is no larger."""
    y = checked_data(y, "k-space")
    wanted = "k-space must be real (batch, 2, turns, height, width)"
    require(y.ndim == 5 and not y.is_complex(), f"{wanted}, got {y.dtype} of shape {tuple(y.shape)}")
    mask = physics.mask.to(y)
    sizes = f"the mask has shape {tuple(mask.shape)}, k-space {tuple(y.shape)}: they must agree"
    require(mask.shape[1:] == y.shape[1:] and mask.shape[0] in (1, len(y)), sizes)
    # ½Σ‖MₜFx − yₜ‖² and ½‖MFx − y‖² differ by a constant for M² = ΣMₜ² and My = ΣMₜyₜ.
    weight = mask.square().sum(2).sqrt()
    joint = (mask * y).sum(2) / weight.where(weight > 0, 1.0)
    return joint, MRI(mask=weight, noise_model=physics.noise_model)
