"""What single-coil and multi-coil MRI share: layouts, masks, the noise level, and a look at whether things fit."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from deepinv.physics import MRI, MultiCoilMRI, Physics
from torch import Tensor

from ..errors import require
from ..types import named, per_sample
from ._data import checked_data

OUTERMOST = 0.03
"""The share of samples that the noise level is read from: those furthest from the zero frequency."""
FEWEST = 100
"""At least so many samples are needed for it."""
ROUNDING = 1e-6
"""What is smaller than this, in units of the largest sample, is a zero."""
OFF_CENTRE = 1 / 16
"""The largest sample may be so far from the centre, in units of the side: phases move it by a few samples."""
FEW = 0.01
"""A mask and its data may disagree in this share of the samples."""


class Samples(NamedTuple):
    """Centred k-space (B, coils, H, W) and its mask, whose largest value is one."""

    y: Tensor
    """As it was given, complex."""
    kspace: Tensor
    """Where the mask samples it, in the units of that mask."""
    mask: Tensor
    gain: Tensor
    """(B,): what the mask was divided by."""


def samples_of(y: Tensor, physics: MRI | MultiCoilMRI, coils: bool) -> Samples:
    """The samples behind data and physics, after a look at whether they can be used."""
    y = as_complex(checked_data(y, "k-space"), coils)
    mask, gain = checked_mask(physics, y)
    kspace = y / per_sample(gain, y) * (mask != 0)
    seen = bool(kspace.flatten(1).any(1).all())
    require(seen, "k-space is zero wherever the mask samples it: do they belong together?")
    return Samples(y, kspace, mask, gain)


def as_complex(y: Tensor, coils: bool) -> Tensor:
    """k-space as a complex tensor (B, coils, H, W), whether given so or in deepinv's real layout."""
    wanted = "(batch, 2, coils, height, width) or complex (batch, coils, height, width)"
    if not coils:
        wanted = "(batch, 2, height, width) or complex (batch, 1, height, width)"
    shape = tuple(y.shape)
    if y.is_complex():
        require(y.ndim == 4 and (coils or shape[1] == 1), f"k-space must be {wanted}, got complex of shape {shape}")
        return y
    require(y.ndim == (5 if coils else 4) and shape[1] == 2, f"k-space must be real {wanted}, got shape {shape}")
    parts = y if coils else y[:, :, None]
    return torch.complex(parts[:, 0], parts[:, 1])


def measures_like(kind: type[Physics], physics: Physics) -> bool:
    """Whether a physics is of this kind and has put no method of its own in place of one of the kind."""
    if not isinstance(physics, kind):
        return False
    ancestors = type(physics).__mro__
    own = {name for space in (physics, *ancestors[: ancestors.index(kind)]) for name in vars(space)}
    return not any(callable(getattr(kind, name, None)) and not name.startswith("__") for name in own)


def checked_mask(physics: MRI | MultiCoilMRI, y: Tensor) -> tuple[Tensor, Tensor]:
    """The mask of each image (B, 1, H, W), of largest value one, and what it was divided by (B,)."""
    both = physics.mask.to(y.real)
    sizes = f"the mask has shape {tuple(both.shape)}, k-space {tuple(y.shape)}: they must agree"
    fits = both.ndim == 4 and both.shape[-2:] == y.shape[-2:] and both.shape[0] in (1, len(y)) and both.shape[1] <= 2
    require(fits, f"{sizes}; masks that differ between images are (batch, 1, height, width)")
    require(bool(torch.isfinite(both).all()), "the mask holds NaN or infinite values")
    require(torch.equal(both[:, :1], both[:, -1:]), "the mask must be the same for real and imaginary part")
    mask = both[:, :1].expand(len(y), -1, -1, -1)
    gain = mask.abs().amax((1, 2, 3))
    require(bool((gain > 0).all()), "the mask samples nothing: at least one entry must be non-zero")
    return mask / per_sample(gain, mask), gain


def unshifted(kspace: Tensor) -> Tensor:
    """Centred k-space of a centred image as the plain FFT gives it: all about centring is folded in once."""
    return torch.fft.fft2(centred_ifft2(kspace), norm="ortho")


def centred_ifft2(kspace: Tensor) -> Tensor:
    """The image behind centred k-space."""
    shifted = torch.fft.ifftshift(kspace, dim=(-2, -1))
    return torch.fft.fftshift(torch.fft.ifft2(shifted, norm="ortho"), dim=(-2, -1))


def mirrored(kspace: Tensor) -> Tensor:
    """k ↦ −k."""
    return torch.roll(torch.flip(kspace, (-2, -1)), (1, 1), (-2, -1))


def outer_noise(y: Tensor, mask: Tensor) -> Tensor:
    """The noise level (B,) of un-shifted k-space (B, coils, H, W): the median power of the outermost samples.

    There is little of the image there, and the median ignores what there is in a few samples. Coils may differ: it is
    their root mean square.
    """
    levels = [
        torch.stack([median_level(coil[outer]) for coil in one])
        for one, outer in zip(y, outermost(y, mask), strict=True)
    ]
    return torch.stack(levels).square().mean(1).sqrt()


def outermost(y: Tensor, mask: Tensor, share: float = OUTERMOST) -> Tensor:
    """Flags (B, H, W) for the outermost share of the samples."""
    radius = _radius(*y.shape[-2:]).to(y.device)
    flags = []
    for sampled in measured(y, mask):
        count = int(sampled.sum())
        wanted = min(count, max(round(share * count), FEWEST))
        flags.append(sampled & (radius >= radius[sampled].topk(wanted).values[-1]))
    return torch.stack(flags)


def measured(y: Tensor, mask: Tensor) -> Tensor:
    """Flags (B, H, W) for the samples of un-shifted k-space; zeros, up to rounding, are padding and not samples."""
    strength = y.abs().amax(1)
    return (mask[:, 0] != 0) & (strength > ROUNDING * strength.amax((1, 2), keepdim=True))


def odd_noise(y: Tensor, mask: Tensor) -> Tensor:
    """The noise level (B,) of un-shifted k-space (B, 1, H, W) of real images: what breaks their symmetry y(−k) = y(k)*.

    Where too few samples have mirror images, the outermost samples tell.
    """
    radius = _radius(*y.shape[-2:]).to(y.device)
    levels = []
    for one, weights, own, outer in zip(y, mask[:, 0], measured(y, mask), outer_noise(y, mask), strict=True):
        pairs = own & mirrored(own) & (radius >= radius[own].median()) & (mirrored(weights) == weights)
        odd = (one - mirrored(one).conj()) / math.sqrt(2)
        levels.append(median_level(odd[:, pairs]) if pairs.sum() >= 32 else outer)
    return torch.stack(levels)


def doubts(y: Tensor, mask: Tensor) -> list[str]:
    """What does not look right about centred k-space (B, coils, H, W) and its mask (B, 1, H, W): sentences."""
    strength, sampled = y.abs().sum(1), mask[:, 0] != 0
    used = strength * sampled
    return [*_hollow(used), *_off_centre(used), *_padding(strength, sampled), *_unused(strength, sampled)]


def _hollow(used: Tensor) -> list[str]:
    height, width = used.shape[-2:]
    rows, columns = (slice(max(side // 2 - 1, 0), side // 2 + 2) for side in (height, width))
    empty = ~used[:, rows, columns].flatten(1).any(1)
    if not bool(empty.any()):
        return []
    return [
        f"nothing was measured next to the zero frequency of {named(empty)}, at [{height // 2}, {width // 2}]: the "
        "brightness of the image is not in the data"
    ]


def _off_centre(strength: Tensor) -> list[str]:
    height, width = strength.shape[-2:]
    largest = strength.flatten(1).argmax(1)
    rows, columns = largest // width - height // 2, largest % width - width // 2
    off = (rows.abs() > max(4, OFF_CENTRE * height)) | (columns.abs() > max(4, OFF_CENTRE * width))
    if not bool(off.any()):
        return []
    place = f"({int(rows[off][0])}, {int(columns[off][0])})"
    return [
        f"the largest sample of k-space in {named(off)} is {place} samples from the centre: the zero frequency belongs "
        f"to the middle, at [{height // 2}, {width // 2}]; apply torch.fft.fftshift to data and mask if it is in the "
        "corner"
    ]


def _padding(strength: Tensor, sampled: Tensor) -> list[str]:
    share = ((strength == 0) & sampled).flatten(1).sum(1) / sampled.flatten(1).sum(1)
    empty = share > FEW
    if not bool(empty.any()):
        return []
    return [
        f"{100 * share.max():.0f} % of the samples that the mask of {named(empty)} counts as measured are exactly "
        "zero: they are taken for measurements; if they are not, set the mask to zero there"
    ]


def _unused(strength: Tensor, sampled: Tensor) -> list[str]:
    found = (strength != 0).flatten(1).sum(1)
    share = ((strength != 0) & ~sampled).flatten(1).sum(1) / found.clamp_min(1)
    extra = share > FEW
    if not bool(extra.any()):
        return []
    return [
        f"{100 * share.max():.0f} % of the data of {named(extra)} lie where the mask has zeros, and are ignored: do "
        "mask and data belong together?"
    ]


def median_level(samples: Tensor) -> Tensor:
    """The level of complex noise in each of its parts, by the median power of samples that are mostly noise."""
    # The power of complex noise of level σ in both parts is exponential with mean 2σ².
    return (samples.abs().square().median() / (2 * math.log(2))).sqrt()


def _radius(height: int, width: int) -> Tensor:
    """Squared distance from the zero frequency, un-shifted, in units of the sampled band."""
    return torch.fft.fftfreq(height)[:, None].square() + torch.fft.fftfreq(width)[None].square()
