"""Every physics of deepinv, built small with a picture that it can measure, for `operators.py` and the tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import deepinv.physics as dp
import torch
from deepinv.physics import GaussianNoise, Physics, PoissonNoise
from deepinv.physics.functional import gaussian_blur
from deepinv.transform import Shift
from torch import Tensor
from torch.nn import functional as F

from pnpilot.io.scans import example_brain
from pnpilot.physics import CodedDiffraction, ShotNoise

Made = tuple[Physics, Any]


def generator(seed: int = 0) -> torch.Generator:
    """Always the same."""
    return torch.Generator().manual_seed(seed)


def noise(level: float = 0.02) -> GaussianNoise:
    """Always the same."""
    return GaussianNoise(level, rng=generator(1))


def photons(gain: float) -> PoissonNoise:
    """Counts, always the same."""
    return PoissonNoise(gain, normalize=False, clip_positive=True, rng=generator(1))


def picture(channels: int, side: int) -> Tensor:
    """A brain slice, in every channel a pixel further and a little darker."""
    grey = F.interpolate(example_brain(), (side, side), mode="area")
    return torch.cat([grey.roll(band, -1) * (1 - 0.1 * band) for band in range(channels)], 1)


def complex_picture(side: int) -> Tensor:
    """The same with a phase, as deepinv has MR images."""
    grey, ramp = picture(1, side), torch.linspace(-1, 1, side)
    return torch.cat([grey * ramp.cos(), grey * ramp.sin()], 1)


def kept(share: float, *shape: int) -> Tensor:
    """A mask of single samples; the middle of k-space is among them."""
    mask = (torch.rand(*shape, generator=generator()) < share).float()
    middle = tuple(slice(length // 2 - 3, length // 2 + 3) for length in shape[-2:])
    mask[(..., *middle)] = 1
    return mask


def coils(side: int) -> Tensor:
    """Maps of four coils (1, 4, H, W)."""
    ramp = torch.linspace(-1, 1, side)
    bumps = [torch.exp(-((ramp[:, None] - row) ** 2) - (ramp - column) ** 2) for row in (-1, 1) for column in (-1, 1)]
    maps = torch.stack(bumps)[None]
    return maps / maps.square().sum(1, keepdim=True).sqrt() * torch.exp(torch.tensor(0.7j))


def volume(image: Tensor) -> Tensor:
    """Four slices (B, C, 4, H, W)."""
    return image[:, :, None].repeat(1, 1, 4, 1, 1)


def blurred(side: int, channels: int = 1, width: float = 1.5, **others: Any) -> dp.BlurFFT:
    """A Gaussian blur with periodic boundaries."""
    return dp.BlurFFT((channels, side, side), filter=gaussian_blur(sigma=(width, width)), **others)


def smaller(side: int, channels: int = 1, level: float = 0.02) -> dp.Downsampling:
    """Half as many pixels a side."""
    return dp.Downsampling((channels, side, side), filter="gaussian", factor=2, noise_model=noise(level))


def holes(side: int, channels: int = 1, level: float = 0.02) -> dp.Inpainting:
    """Half of the pixels."""
    return dp.Inpainting((channels, side, side), mask=kept(0.5, channels, side, side), noise_model=noise(level))


def varying(side: int) -> dp.SpaceVaryingBlur:
    """Two kernels that fade into each other from left to right."""
    filters = torch.stack([gaussian_blur(sigma=(width, width), psf_size=(11, 11)) for width in (0.8, 2.0)], 2)
    share = torch.linspace(0, 1, side).expand(1, 1, side, side)
    weights = torch.stack([1 - share, share], 2)
    return dp.SpaceVaryingBlur(filters=filters, multipliers=weights, padding="circular", noise_model=noise())


def tiled(side: int) -> dp.TiledSpaceVaryingBlur:
    """One kernel for each of nine overlapping tiles."""
    filters = torch.ones(1, 1, 9, 5, 5) / 25
    return dp.TiledSpaceVaryingBlur(filters, patch_size=side // 2, stride=side // 4, noise_model=noise())


def ultrasound(side: int) -> dp.UltrasoundPlaneWave:
    """Five plane waves, 32 receivers."""
    places = torch.stack([torch.linspace(-6e-3, 6e-3, 32), torch.zeros(32), torch.zeros(32)], -1)
    angles, size = torch.linspace(-0.2, 0.2, 5), (12.8e-3 / side, 12.8e-3 / side)
    physics = dp.UltrasoundPlaneWave((side, side), angles, places, 512, 20e6, pixel_size=size, normalize=True)
    physics.noise_model = noise(0.01)
    return physics


def in_turns(side: int) -> Tensor:
    """Masks of two turns (1, 2, 2, H, W)."""
    return torch.stack([kept(0.3, 1, side, side), kept(0.3, 1, side, side).flip(-1)], 1)[None].repeat(1, 2, 1, 1, 1)


def phases(side: int) -> Tensor:
    """Four phase masks."""
    return torch.polar(torch.ones(4, side, side), 2 * math.pi * torch.rand(4, side, side, generator=generator()))


def mirrored() -> dict[str, Callable[..., Tensor]]:
    """A function and its adjoint."""
    return {"A": lambda x, **_: x.flip(-1), "A_adjoint": lambda y, **_: y.flip(-1)}


def scattering(side: int) -> dp.Scattering:
    """Eight transmitters and receivers on a circle."""
    turn = torch.arange(8) * math.pi / 4
    places = torch.stack([turn.cos(), turn.sin()])
    return dp.Scattering(side, receivers=places[:, None].expand(2, 8, 8), transmitters=places)


CATALOGUE: dict[str, Callable[[int], Made]] = {
    "Denoising": lambda s: (dp.Denoising(noise(0.1)), picture(1, s)),
    "Denoising, colour": lambda s: (dp.Denoising(noise(0.1)), picture(3, s)),
    "Inpainting": lambda s: (holes(s), picture(1, s)),
    "Inpainting, colour": lambda s: (holes(s, 3), picture(3, s)),
    "Demosaicing": lambda s: (dp.Demosaicing((3, s, s), noise_model=noise()), picture(3, s)),
    "BlurFFT": lambda s: (blurred(s, noise_model=noise()), picture(1, s)),
    "BlurFFT, colour": lambda s: (blurred(s, 3, noise_model=noise()), picture(3, s)),
    **{
        f"Blur, {padding}": lambda s, padding=padding: (
            dp.Blur(gaussian_blur(sigma=(1.5, 1.5)), padding=padding, noise_model=noise()),
            picture(1, s),
        )
        for padding in ("valid", "circular", "replicate", "reflect", "constant")
    },
    "Blur, volumes": lambda s: (
        dp.Blur(torch.ones(1, 1, 3, 3, 3) / 27, padding="circular", noise_model=noise()),
        volume(picture(1, s)),
    ),
    "SpaceVaryingBlur": lambda s: (varying(s), picture(1, s)),
    "TiledSpaceVaryingBlur": lambda s: (tiled(s), picture(1, s)),
    "Downsampling": lambda s: (smaller(s), picture(1, s)),
    "Downsampling, colour": lambda s: (smaller(s, 3), picture(3, s)),
    "DownsamplingMatlab": lambda s: (dp.DownsamplingMatlab(factor=2, noise_model=noise()), picture(1, s)),
    "Upsampling": lambda s: (
        dp.Upsampling((1, 2 * s, 2 * s), filter="bicubic", factor=2, noise_model=noise()),
        picture(1, s),
    ),
    "CompressedSensing": lambda s: (
        dp.CompressedSensing(m=s * s // 3, img_size=(1, s, s), rng=generator(), noise_model=noise()),
        picture(1, s),
    ),
    "SinglePixelCamera": lambda s: (dp.SinglePixelCamera(s * s // 3, (1, s, s), noise_model=noise()), picture(1, s)),
    "SinglePixelCamera, fast=False": lambda s: (
        dp.SinglePixelCamera(s * s // 3, (1, s, s), fast=False, rng=generator(), noise_model=noise()),
        picture(1, s),
    ),
    "StructuredRandom": lambda s: (
        dp.StructuredRandom((1, s, s), (1, s, s // 2), rng=generator(), noise_model=noise()),
        picture(1, s),
    ),
    "Tomography": lambda s: (dp.Tomography(40, s, normalize=True, noise_model=noise()), picture(1, s)),
    "Tomography, fan beam": lambda s: (
        dp.Tomography(40, s, fan_beam=True, normalize=True, noise_model=noise()),
        picture(1, s),
    ),
    "UltrasoundPlaneWave": lambda s: (ultrasound(s), picture(1, s)),
    "MRI": lambda s: (dp.MRI(mask=kept(0.3, 1, 1, s, s), noise_model=noise()), complex_picture(s)),
    "MRI, volumes": lambda s: (
        dp.MRI(mask=kept(0.3, 1, 1, 4, s, s), three_d=True, noise_model=noise()),
        volume(complex_picture(s)),
    ),
    "MultiCoilMRI": lambda s: (
        dp.MultiCoilMRI(mask=kept(0.2, 1, 1, s, s), coil_maps=coils(s), noise_model=noise()),
        complex_picture(s),
    ),
    "MultiCoilMRI, volumes": lambda s: (
        dp.MultiCoilMRI(
            kept(0.3, 1, 1, 4, s, s), coils(s)[:, :, None].repeat(1, 1, 4, 1, 1), three_d=True, noise_model=noise()
        ),
        volume(complex_picture(s)),
    ),
    "DynamicMRI": lambda s: (
        dp.DynamicMRI(mask=in_turns(s), noise_model=noise()),
        complex_picture(s)[:, :, None].repeat(1, 1, 2, 1, 1),
    ),
    "SequentialMRI": lambda s: (dp.SequentialMRI(mask=in_turns(s), noise_model=noise()), complex_picture(s)),
    "NonCartesianMRI": lambda s: (
        dp.NonCartesianMRI((2, s, s), num_shots=s // 2, num_samples_per_shot=2 * s, noise_model=noise()),
        complex_picture(s),
    ),
    "Decolorize": lambda s: (dp.Decolorize(channels=3, noise_model=noise()), picture(3, s)),
    "HyperSpectralUnmixing": lambda s: (dp.HyperSpectralUnmixing(E=3, C=8, noise_model=noise()), picture(3, s)),
    "CompressiveSpectralImaging, odd sides": lambda s: (
        dp.CompressiveSpectralImaging((3, s + 1, s + 1), rng=generator(), noise_model=noise(0.005)),
        picture(3, s + 1),
    ),
    "CompressiveSpectralImaging, even sides": lambda s: (
        dp.CompressiveSpectralImaging((3, s, s), rng=generator(), noise_model=noise(0.005)),
        picture(3, s),
    ),
    "StackedLinearPhysics": lambda s: (
        dp.StackedLinearPhysics([holes(s), dp.Denoising(noise(0.2))]),
        picture(1, s),
    ),
    "StackedLinearPhysics, photons": lambda s: (
        dp.StackedLinearPhysics([blurred(s, noise_model=photons(0.02)), dp.Denoising(noise(0.2))]),
        picture(1, s),
    ),
    "Pansharpen": lambda s: (
        dp.Pansharpen((3, s, s), factor=4, noise_color=noise(0.01), noise_gray=noise(0.05)),
        picture(3, s),
    ),
    "ComposedLinearPhysics": lambda s: (dp.compose(blurred(s, 1, 1.0), smaller(s)), picture(1, s)),
    "VirtualLinearPhysics": lambda s: (
        dp.VirtualLinearPhysics(
            physics=holes(s), transform=Shift(), g_params={"x_shift": torch.tensor([3]), "y_shift": torch.tensor([5])}
        ),
        picture(1, s),
    ),
    "BlurMultiScaler": lambda s: (
        dp.BlurMultiScaler(
            dp.Blur(gaussian_blur(sigma=(1.5, 1.5)), padding="circular", noise_model=noise()), (1, s, s)
        ),
        picture(1, s),
    ),
    "BlurFFTMultiScaler": lambda s: (dp.BlurFFTMultiScaler(blurred(s, noise_model=noise()), (1, s, s)), picture(1, s)),
    "InpaintingMultiScaler": lambda s: (dp.InpaintingMultiScaler(holes(s), (1, s, s)), picture(1, s)),
    "PhysicsCropper": lambda s: (dp.PhysicsCropper(holes(s), (2, 2)), F.pad(picture(1, s), (2, 0, 2, 0))),
    "LinearPhysics": lambda s: (dp.LinearPhysics(**mirrored(), noise_model=noise()), picture(1, s)),
    "DecomposablePhysics": lambda s: (
        dp.DecomposablePhysics(
            V_adjoint=lambda x, **_: x.flip(-1),
            V=lambda x, **_: x.flip(-1),
            mask=kept(0.5, 1, 1, s, s),
            img_size=(1, s, s),
            noise_model=noise(),
        ),
        picture(1, s),
    ),
    "CodedDiffraction (ours)": lambda s: (CodedDiffraction(phases(s), ShotNoise(27, generator(1))), picture(1, s)),
    "RandomPhaseRetrieval": lambda s: (
        dp.RandomPhaseRetrieval(m=300, img_size=(1, s, s), rng=generator()),
        picture(1, s).to(torch.complex64),
    ),
    "StructuredRandomPhaseRetrieval": lambda s: (
        dp.StructuredRandomPhaseRetrieval((1, s, s), (1, 2 * s, 2 * s), n_layers=2),
        picture(1, s).to(torch.complex64),
    ),
    "PhaseRetrieval": lambda s: (dp.PhaseRetrieval(dp.LinearPhysics(**mirrored())), picture(1, s)),
    "PtychographyLinearOperator": lambda s: (
        dp.PtychographyLinearOperator((1, s, s)),
        picture(1, s).to(torch.complex64),
    ),
    "Ptychography": lambda s: (dp.Ptychography((1, s, s)), picture(1, s).to(torch.complex64)),
    "Haze": lambda s: (dp.Haze(), (picture(3, s), torch.ones(1, 1, s, s), torch.tensor([0.5]))),
    "Scattering": lambda s: (scattering(s // 2), picture(1, s // 2).to(torch.complex128)),
    "SinglePhotonLidar": lambda s: (dp.SinglePhotonLidar(bins=20), 10 * picture(3, s)),
    "SpatialUnwrapping": lambda s: (dp.SpatialUnwrapping(threshold=0.5), picture(1, s)),
    "Physics": lambda s: (Physics(A=lambda x, **_: x.square(), noise_model=noise()), picture(1, s)),
    "any, with SaltPepperNoise": lambda s: (dp.Denoising(dp.SaltPepperNoise(0.05, 0.05)), picture(1, s)),
}
"""By the name of the class, and what is special. Each gives the physics and the true image, for a side."""
