"""Compressed-sensing MRI: a masked Fourier transform with complex Gaussian noise."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import torch
from deepinv.physics import MRI, GaussianNoise, Physics
from torch import Tensor

from ..errors import require
from ..problem import Hints, Problem, Units, checked_data, energy, looks_non_negative, relative_norm
from ..types import per_sample
from ._linear import noise_of, to_two_channels
from ._masks import build_mask
from .base import TASKS, Setting, Task

ASYMMETRIC = 0.04
"""An image has a phase if more of the energy of k-space, beyond the noise, is against the symmetry of real images; a
constant phase of 0.14 gives as much."""


@TASKS.register("csmri")
class CSMRI(Task):
    """Compressed-sensing MRI, single coil: y = M(Fx + noise)."""

    datasets = ("brain50", "medical4")
    start = "zero-filled"

    def __init__(self) -> None:
        self.settings = [self.setting(factor, sigma) for factor in (2, 4, 8) for sigma in (5, 10, 15)]

    @staticmethod
    def setting(acceleration: float = 4, sigma: float = 15, mask: str | Tensor = "radial") -> Setting:
        """Noise level sigma on the 0-255 scale, per real and imaginary part; a mask by name or centred (H, W)."""
        require(sigma >= 0, f"the noise level must be zero or more, got {sigma}")
        named = mask if isinstance(mask, str) else "own mask"
        prefix = "" if named == "radial" else f"{named} "
        values = {"acceleration": acceleration, "sigma": sigma, "mask": mask}
        return Setting(f"{prefix}x{acceleration:g} sigma={sigma:g}", values)

    def named(self, label: str) -> Setting:
        """Any setting such as 'x3 sigma=7' or 'cartesian x4 sigma=15'."""
        found = re.fullmatch(r"(?:(\w+) )?x(\d+\.?\d*) sigma=(\d+\.?\d*)", label)
        return self.setting(float(found[2]), float(found[3]), found[1] or "radial") if found else super().named(label)

    def draw(self, count: int, generator: torch.Generator) -> list[Setting]:
        """Wider than the settings of the benchmark: all kinds of masks, more and less sampling and noise."""
        shares = torch.rand(count, 3, generator=generator).tolist()
        kinds = ("radial", "radial", "radial", "cartesian", "cartesian", "random")
        return [self.setting(1.5 * (10 / 1.5) ** a, 1 + 24 * s, kinds[int(6 * k)]) for k, a, s in shares]

    def physics(self, setting: Setting, height: int, width: int, generator: torch.Generator) -> MRI:
        """deepinv's MRI with the mask of the setting."""
        mask = setting["mask"]
        if isinstance(mask, str):
            mask = build_mask(mask, height, width, setting["acceleration"], generator)
        mask = torch.as_tensor(mask).float()
        sizes = f"the mask is {tuple(mask.shape)}, the image {(height, width)}: they must agree"
        require(mask.shape == (height, width), sizes)
        return MRI(mask=mask, noise_model=GaussianNoise(setting["sigma"] / 255, rng=generator))

    def merge(self, physics: Sequence[Physics]) -> MRI:
        """A mask and a noise level per image."""
        sigma = torch.stack([one.noise_model.sigma.reshape(()) for one in physics])
        noise = physics[0].noise_model if (sigma == sigma[0]).all() else GaussianNoise(sigma)
        return MRI(mask=torch.cat([one.mask for one in physics]), noise_model=noise)

    def select(self, physics: MRI, index: Tensor) -> MRI:
        """Their masks and noise levels."""
        sigma = physics.noise_model.sigma.reshape(-1)
        noise = GaussianNoise(sigma[index] if len(sigma) > 1 else sigma)
        # deepinv moves masks to the CPU unless told not to.
        return MRI(mask=physics.mask[index], noise_model=noise, device=physics.mask.device)

    def embed(self, image: Tensor) -> Tensor:
        """A zero imaginary part."""
        return to_two_channels(image)

    def accepts(self, physics: Physics) -> bool:
        """Two-dimensional single-coil MRI."""
        return isinstance(physics, MRI) and not physics.three_d

    def problem(self, y: Tensor, physics: MRI, hints: Hints) -> MaskedFourier:
        """The fast path: everything about centring is folded into mask and data once."""
        if isinstance(y, Tensor) and y.is_complex() and y.ndim == 4 and y.shape[1] == 1:
            y = to_two_channels(y)
        y = checked_data(y, "k-space", channels=2)
        both = physics.mask.to(y)
        sizes = f"the mask has shape {tuple(both.shape)}, k-space {tuple(y.shape)}: they must agree"
        require(both.shape[-2:] == y.shape[-2:] and both.shape[0] in (1, len(y)), sizes)
        require(bool(torch.isfinite(both).all()), "the mask holds NaN or infinite values")
        require(torch.equal(both[:, :1], both[:, 1:]), "the mask must be the same for real and imaginary part")
        mask = both[:, :1].expand(len(y), -1, -1, -1)
        gain = mask.abs().amax((1, 2, 3))
        require(bool((gain > 0).all()), "the mask samples nothing: at least one entry must be non-zero")
        mask = mask / per_sample(gain, mask)
        kspace = torch.complex(y[:, :1], y[:, 1:]) / per_sample(gain, y) * (mask != 0)
        require(
            bool(kspace.flatten(1).any(1).all()),
            "k-space is zero wherever the mask samples it: do they belong together?",
        )
        units = Units.of(hints, _centred_ifft2(mask * kspace), noise_of(physics), gain)
        unshifted = torch.fft.fft2(_centred_ifft2(units.scale(kspace)), norm="ortho")
        problem = MaskedFourier(unshifted, units, torch.fft.ifftshift(mask, dim=(-2, -1)))
        problem.know_noise()
        if hints.real is None:
            problem.units = replace(problem.units, real=problem.looks_real().cpu())
        return problem


class MaskedFourier(Problem):
    """D(x) = ½‖MFx − y‖², with k-space un-shifted: the zero frequency is the first entry."""

    offers = frozenset({"prox", "grad", "linear"})
    per_image: tuple[str, ...] = ("y", "mask", "measurements")

    def __init__(self, y: Tensor, units: Units, mask: Tensor) -> None:
        super().__init__(y, units)
        self.mask = mask
        self.measurements = (mask != 0).flatten(1).sum(1)

    def x0(self) -> Tensor:
        """The zero-filled image, complex."""
        return self.A_adjoint(self.y)

    def A(self, x: Tensor) -> Tensor:
        """MFx."""
        return self.mask * torch.fft.fft2(x, norm="ortho")

    def A_adjoint(self, y: Tensor) -> Tensor:
        """F⁻¹My."""
        return torch.fft.ifft2(self.mask * y, norm="ortho")

    def grad(self, x: Tensor) -> Tensor:
        """F⁻¹M(MFx − y)."""
        return self.A_adjoint(self.A(x) - self.y)

    def prox(self, v: Tensor, mu: Tensor) -> Tensor:
        """Each sample of k-space is a weighted mean of what v and the data say; the rest is v's."""
        k = torch.fft.fft2(v, norm="ortho")
        gain = self.mask / (self.mask * self.mask + per_sample(mu, self.mask))
        return torch.fft.ifft2(k + gain * (self.y - self.mask * k), norm="ortho")

    def measured(self) -> list[Tensor]:
        """Real and imaginary part of the data, the zero-filled image, and the mask, centred."""
        y, mask = (torch.fft.fftshift(image, dim=(-2, -1)) for image in (self.y, self.mask))
        return [y.real, y.imag, self.x0().real, mask]

    def misfit(self, x: Tensor) -> Tensor:
        """‖MFx − y‖ / ‖y‖."""
        return relative_norm(self.A(x) - self.y, self.y)

    def looks_real(self) -> Tensor:
        """Whether each image is real and non-negative (B,), as far as its data tell beyond the noise.

        k-space of a real image has y(−k) = y(k)* wherever both are sampled, and the zero-filled image of a non-negative
        one has little below zero.
        """
        variance = self.y.real.new_zeros(len(self)) if self.units.sigma_n is None else self.units.sigma_n.square()
        # Each sample is weighted like its mirror image, which makes a difference for masks other than 0 and 1.
        there, back = mirrored(self.mask) * self.y, self.mask * mirrored(self.y).conj()
        noise = variance * (energy(self.mask * (back != 0)) + energy(mirrored(self.mask) * (there != 0)))
        chance = 3 * noise * (2 / (there != 0).flatten(1).sum(1).clamp_min(1)).sqrt()
        symmetric = energy(there - back) / 2 - noise - chance < ASYMMETRIC * energy(there)
        telling = energy(there) > 0.1 * energy(self.mask * self.y)

        return symmetric & telling & looks_non_negative(self.x0().real, variance * energy(self.mask))

    def estimated_noise(self) -> Tensor:
        """From what breaks the symmetry y(−k) = y(k)* of real images, at high frequencies, where a phase shows little.

        Where samples have no mirror images, from those at high frequencies themselves.
        """
        height, width = self.y.shape[-2:]
        radius = torch.fft.fftfreq(height)[:, None].square() + torch.fft.fftfreq(width)[None].square()
        radius = radius.to(self.y.device)
        levels = []
        for y, mask in zip(self.y[:, 0], self.mask[:, 0] != 0, strict=True):
            outer = mask & (radius >= radius[mask].median())
            pairs = outer & mirrored(mask)
            odd = (y - mirrored(y).conj()) / math.sqrt(2)
            power = (odd[pairs] if pairs.sum() >= 32 else y[outer]).abs().square()
            # The power of complex noise of level σ in both parts is exponential with mean 2σ².
            levels.append((power.median() / (2 * math.log(2))).sqrt())
        return torch.stack(levels)

    def export(self, image: Tensor) -> Tensor:
        """deepinv's two channels."""
        return to_two_channels(self.units.unscale(image))


def mirrored(kspace: Tensor) -> Tensor:
    """k ↦ −k."""
    return torch.roll(torch.flip(kspace, (-2, -1)), (1, 1), (-2, -1))


def _centred_ifft2(kspace: Tensor) -> Tensor:
    shifted = torch.fft.ifftshift(kspace, dim=(-2, -1))
    return torch.fft.fftshift(torch.fft.ifft2(shifted, norm="ortho"), dim=(-2, -1))
