"""A real, fully sampled scan of several coils, undersampled afterwards: its data, its truth, and scores against it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import torch
from deepinv.physics import MRI, MultiCoilMRI, Physics
from torch import Tensor
from torch.nn import functional as F

from ..errors import UnknownName, require
from ..metrics import psnr, ssim
from ..problems._kspace import centred_ifft2
from ..recon import coils
from ..recon.sampling import calibration_block
from ..tasks._masks import build_mask

SETTINGS = tuple(f"{kind} x{factor}" for kind in ("calibrated", "radial", "random") for factor in (2, 4, 6))
MAPS_FROM = 24
"""Side of the block in the middle of k-space that maps are estimated from."""
HEAD, BLUR = 0.05, 2.0
"""The head: where the truth, smoothed by so many pixels, exceeds this share of its largest value; holes are filled."""
EMPTY = 0.1
"""A scan with a larger share of zeros is not fully sampled."""


@dataclass
class Scan:
    """K-space and coil maps (coils, H, W), centred; the truth is what the maps combine the full data to."""

    kspace: Tensor
    maps: Tensor
    peak: Tensor = field(init=False)
    truth: Tensor = field(init=False)
    """The magnitude (1, 1, H, W), in units of its peak in the head."""
    head: Tensor = field(init=False)
    """The pixels (H, W) that count."""

    def __post_init__(self) -> None:
        sizes = f"k-space is {tuple(self.kspace.shape)} and the maps are {tuple(self.maps.shape)}: they must agree"
        require(self.kspace.shape == self.maps.shape, sizes)
        zeros = (self.kspace.abs().sum(0) == 0).float().mean().item()
        require(zeros <= EMPTY, f"{100 * zeros:.0f} % of k-space is zero: a fully sampled scan is needed, as the truth")
        magnitude = combined(self.kspace, self.maps).abs()[None, None]
        self.head = head_of(magnitude)
        require(bool(self.head.any()), "no head is found: single pixels outshine the whole image")
        self.peak = magnitude[..., self.head].max()
        self.truth = magnitude / self.peak

    def measure(self, label: str, seed: int) -> tuple[Tensor, Physics, float]:
        """Data and physics of a setting, and the share of k-space that is kept."""
        found = re.fullmatch(r"(\w+) x(\d+\.?\d*)", label)
        if found is None:
            raise UnknownName(f"unknown setting {label!r}; known: {', '.join(map(repr, SETTINGS))}, and such")
        shape = (self.kspace.shape[-2], self.kspace.shape[-1])
        generator = torch.Generator().manual_seed(seed)
        mask = build_mask(found[1], *shape, float(found[2]), generator)
        y = (mask * self.kspace)[None]
        y = torch.stack([y.real, y.imag], 1)
        # One coil whose map is one everywhere is single-coil MRI.
        if len(self.maps) == 1 and bool((self.maps == 1).all()):
            return y[:, :, 0], MRI(mask=mask[None, None], img_size=(2, *shape)), mask.mean().item()
        return y, MultiCoilMRI(mask=mask, coil_maps=self.maps[None], img_size=(2, *shape)), mask.mean().item()

    def scored(self, image: Tensor) -> dict[str, float]:
        """PSNR and SSIM in the head of the magnitude of an image (1, 2, H, W)."""
        found = self.shown(image)
        return {
            "psnr": psnr(found, self.truth, self.head).item(),
            "ssim": ssim(found, self.truth, self.head).item(),
        }

    def shown(self, image: Tensor) -> Tensor:
        """The magnitude (1, 1, H, W) of an image (1, 2, H, W) in units of the peak."""
        return image.cpu().square().sum(1, keepdim=True).sqrt() / self.peak

    def one_coil(self, which: str) -> Scan:
        """The scan of a single coil, by its number, or of the image that all coils combine to; with the same head."""
        if which == "combined":
            kspace = centred_fft2(combined(self.kspace, self.maps))[None]
        else:
            known = which.isdecimal() and int(which) < len(self.kspace)
            require(known, f"the coil must be 'combined' or a number below {len(self.kspace)}, got {which!r}")
            kspace = self.kspace[int(which)][None]
        single = Scan(kspace, torch.ones_like(kspace))
        single.peak = single.peak * single.truth[..., self.head].max()
        single.truth, single.head = centred_ifft2(kspace).abs()[None] / single.peak, self.head
        return single


def combined(kspace: Tensor, maps: Tensor) -> Tensor:
    """The coil images, weighted by the maps and summed (H, W)."""
    return (maps.conj() * centred_ifft2(kspace)).sum(0)


def centred_fft2(image: Tensor) -> Tensor:
    """Centred k-space of a centred image."""
    shifted = torch.fft.ifftshift(image, dim=(-2, -1))
    return torch.fft.fftshift(torch.fft.fft2(shifted, norm="ortho"), dim=(-2, -1))


def estimated_maps(kspace: Tensor, side: int = MAPS_FROM) -> Tensor:
    """ESPIRiT maps by sigpy, from the middle of k-space."""
    width = min(side, *kspace.shape[-2:])
    return torch.from_numpy(coils.estimated_maps(kspace.numpy(), (width, width)))


def maps_from_samples(kspace: Tensor, mask: Tensor) -> Tensor:
    """The same from the largest block in the middle that a mask (H, W) measures whole."""
    return torch.from_numpy(coils.estimated_maps(kspace.numpy(), calibration_block(mask.numpy() != 0)))


def head_of(magnitude: Tensor) -> Tensor:
    """Where there is something to see (H, W); a pixel between others of its row, and of its column, is no hole."""
    reach = int(3 * BLUR)
    taps = torch.exp(-torch.arange(-reach, reach + 1.0).square() / (2 * BLUR**2))
    window = torch.outer(taps, taps)[None, None] / taps.sum() ** 2
    smooth = F.conv2d(magnitude, window, padding=reach)[0, 0]
    inside = (smooth > HEAD * magnitude.max()).int()
    surrounded = torch.ones_like(inside)
    for axis in (0, 1):
        before, after = inside.cummax(axis).values, inside.flip(axis).cummax(axis).values.flip(axis)
        surrounded = surrounded * before * after
    return surrounded.bool()
