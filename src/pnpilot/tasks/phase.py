"""Coded-diffraction phase retrieval: amplitudes of Fourier transforms behind random phase masks."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import torch
from deepinv.physics import NoiseModel, Physics
from torch import Tensor

from ..errors import require
from ..problem import Hints, Problem, Units, checked_data, relative_norm
from ..types import per_sample
from ._linear import noise_of
from .base import TASKS, Setting, Task

TINY = 1e-8
"""Keeps the phase of a vanishing field defined."""
FIT = 60
"""Iterations of the fit that shows the noise."""


class CodedDiffraction(Physics):
    """y_j = |F(D_j x)| for phase masks D_j of unit modulus (J, H, W), or (B, J, H, W) when images have their own."""

    def __init__(self, masks: Tensor, noise_model: NoiseModel | None = None, **kwargs: Any) -> None:
        super().__init__(noise_model=noise_model, **kwargs) if noise_model else super().__init__(**kwargs)
        what = f"masks must be complex (J, H, W) or (B, J, H, W), got {masks.dtype} {tuple(masks.shape)}"
        require(masks.ndim in (3, 4) and masks.is_complex(), what)
        require(bool(((masks.abs() - 1).abs() < 1e-3).all()), "masks must have modulus one everywhere")
        self.register_buffer("masks", (masks if masks.ndim == 4 else masks[None]).to(torch.complex64))

    def A(self, x: Tensor, **_: Any) -> Tensor:
        """Amplitudes (B, J, H, W) of an image (B, 1, H, W)."""
        return fields(self.masks, x).abs()


def fields(masks: Tensor, x: Tensor) -> Tensor:
    """The complex fields F(D_j x), (B, J, H, W), of an image (B, 1, H, W)."""
    return torch.fft.fft2(masks * x, norm="ortho")


def back(masks: Tensor, field: Tensor) -> Tensor:
    """The pseudo-inverse of `fields`: the mean over j of D_j* F⁻¹ field_j."""
    return (masks.conj() * torch.fft.ifft2(field, norm="ortho")).mean(1, keepdim=True)


class ShotNoise(NoiseModel):
    """y² = |Ax|² + (α/255)·|Ax|·n with n ~ N(0, 1), for images in [0, 1]."""

    def __init__(self, alpha: float | Tensor, rng: torch.Generator | None = None) -> None:
        super().__init__(rng=rng)
        self.register_buffer("alpha", torch.as_tensor(alpha, dtype=torch.float32).reshape(-1))

    @property
    def sigma(self) -> Tensor:
        """Noise level of the amplitude of strong samples: d√v = dv / 2√v."""
        return self.alpha / (2 * 255)

    def forward(self, amplitude: Tensor, **_: Any) -> Tensor:
        """Noisy amplitudes."""
        noise = torch.randn(amplitude.shape, generator=self.rng, device=amplitude.device, dtype=amplitude.dtype)
        noisy = amplitude.square() + per_sample(self.alpha, amplitude) / 255 * amplitude * noise
        return noisy.clamp_min(0).sqrt()


@TASKS.register("phase")
class PhaseRetrieval(Task):
    """Coded-diffraction phase retrieval: amplitudes behind four random phase masks, with shot noise."""

    datasets = ("phase12",)

    def __init__(self) -> None:
        self.settings = [self.setting(alpha) for alpha in (9, 27, 81)]

    @staticmethod
    def setting(alpha: float = 27, masks: int = 4) -> Setting:
        """Shot noise α for intensities on the 0-255 scale; masks are drawn anew for every image."""
        require(alpha >= 0, f"the noise level alpha must be zero or more, got {alpha}")
        require(masks >= 1, f"at least one mask is needed, got {masks}")
        return Setting(
            f"alpha={alpha:g}" if masks == 4 else f"{masks} masks alpha={alpha:g}", {"alpha": alpha, "masks": masks}
        )

    def named(self, label: str) -> Setting:
        """Any setting such as 'alpha=40' or '6 masks alpha=27'."""
        found = re.fullmatch(r"(?:(\d+) masks )?alpha=(\d+\.?\d*)", label)
        require(found is not None, f"unknown setting {label!r}: write it as 'alpha=40', or '6 masks alpha=27'")
        assert found is not None
        return self.setting(float(found[2]), int(found[1] or 4))

    def draw(self, count: int, generator: torch.Generator) -> list[Setting]:
        """Noise wider than in the benchmark, and three to eight masks: as many for all images of a batch."""
        masks = int(torch.randint(3, 9, (), generator=generator))
        return [self.setting(5 * 24**share, masks) for share in torch.rand(count, generator=generator).tolist()]

    def physics(self, setting: Setting, height: int, width: int, generator: torch.Generator) -> CodedDiffraction:
        """Masks exp(2πiU), U uniform."""
        turns = torch.rand(1, setting["masks"], height, width, generator=generator)
        masks = torch.polar(torch.ones_like(turns), 2 * math.pi * turns)
        return CodedDiffraction(masks, ShotNoise(setting["alpha"], rng=generator))

    def merge(self, physics: Sequence[Physics]) -> CodedDiffraction:
        """Masks and a noise level per image."""
        alpha = torch.cat([one.noise_model.alpha for one in physics])
        noise = physics[0].noise_model if (alpha == alpha[0]).all() else ShotNoise(alpha)
        return CodedDiffraction(torch.cat([one.masks for one in physics]), noise)

    def select(self, physics: CodedDiffraction, index: Tensor) -> CodedDiffraction:
        """Their masks and noise levels."""
        alpha = physics.noise_model.alpha
        return CodedDiffraction(physics.masks[index], ShotNoise(alpha[index] if len(alpha) > 1 else alpha))

    def accepts(self, physics: Physics) -> bool:
        """Coded diffraction."""
        return isinstance(physics, CodedDiffraction)

    def problem(self, y: Tensor, physics: CodedDiffraction, hints: Hints) -> AmplitudeProblem:
        """Amplitudes in units of the peak."""
        masks = physics.masks
        y = checked_data(y, "the amplitudes", channels=masks.shape[1])
        sizes = f"the masks have shape {tuple(masks.shape)}, the amplitudes {tuple(y.shape)}: they must agree"
        require(masks.shape[-2:] == y.shape[-2:] and masks.shape[0] in (1, len(y)), sizes)
        require(bool((y >= 0).all()), "amplitudes cannot be negative")
        # The transform keeps energy, so the data tell the root mean square of the image; the peak is about twice that.
        estimate = 2 * y.square().mean((1, 2, 3), keepdim=True).sqrt()
        units = Units.of(hints, estimate, noise_of(physics), y.new_ones(len(y)))
        return AmplitudeProblem(units.scale(y), units, masks.expand(y.shape[0], -1, -1, -1))


class AmplitudeProblem(Problem):
    """D(x) = ½‖|Ax| − y‖² / J for J coded-diffraction amplitudes."""

    offers = frozenset({"grad"})
    per_image = ("y", "masks")

    def __init__(self, y: Tensor, units: Units, masks: Tensor) -> None:
        super().__init__(y, units)
        self.masks = masks

    def x0(self) -> Tensor:
        """All ones: with a few random masks no start is needed."""
        return torch.ones_like(self.y[:, :1], dtype=self.masks.dtype)

    def grad(self, x: Tensor) -> Tensor:
        """A†(Ax − y·Ax/|Ax|)."""
        field = fields(self.masks, x)
        amplitude = field.abs()
        return back(self.masks, field * (1 - self.y / amplitude.clamp_min(TINY)))

    def measured(self) -> list[Tensor]:
        """Amplitudes, and real and imaginary parts of the masks."""
        return [*self.y.split(1, 1), *self.masks.real.split(1, 1), *self.masks.imag.split(1, 1)]

    def misfit(self, x: Tensor) -> Tensor:
        """‖|Ax| − y‖ / ‖y‖."""
        return relative_norm(fields(self.masks, x).abs() - self.y, self.y)

    def estimated_noise(self) -> Tensor:
        """What a non-negative image fitted to the data without any prior leaves, over its degrees of freedom."""
        x = self.x0()
        with torch.no_grad():
            for _ in range(FIT):
                x = (x - self.grad(x)).real.clamp_min(0).to(x.dtype)
        left = (fields(self.masks, x).abs() - self.y).square().mean((1, 2, 3))
        masks = self.y.shape[1]
        return (left * masks / max(masks - 1, 0.5)).sqrt()

    def export(self, image: Tensor) -> Tensor:
        """The image in the user's units."""
        return self.units.unscale(image)
