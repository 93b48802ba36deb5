"""What a denoiser is: `denoiser(x, sigma)`, with x (B, C, H, W) real or complex and sigma (B,) in the units of x."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import BadInput, BadWeights
from ..phase import gauge
from ..registry import Registry

Module = TypeVar("Module", bound=nn.Module)


class Denoiser(nn.Module):
    """Base of all denoisers: subclasses see one real channel at a size their network accepts.

    Channels are denoised independently with the image's own noise level, and so are the real and imaginary part of a
    complex image, after its phase at low resolution was taken out. The call is deepinv's, so every denoiser here also
    serves as a deepinv denoiser.
    """

    name: str
    multiple: int = 1
    """Height and width must be multiples of this for `residual`; other sizes are padded and cropped."""
    differentiable: bool = True
    needs_weights: bool = False
    """Whether it must be trained before use."""
    sha256: str | None = None
    """Of the weights that were loaded into it."""
    bf16: bool = True
    """Whether it may run in bf16 on a GPU."""
    adapts: bool = False
    """Whether it wraps a model that only the caller has, so that a name is not enough to build it."""

    @classmethod
    def example(cls) -> Denoiser:
        """An instance to try things on; adapters that need an argument choose a small one."""
        return cls()

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return next((parameter.device for parameter in self.parameters()), torch.device("cpu"))

    def residual(self, x: Tensor, sigma: Tensor) -> Tensor:
        """What to add to x (N, 1, H, W) to remove noise of level sigma (N, 1, 1, 1)."""
        raise NotImplementedError

    def forward(self, x: Tensor, sigma: Tensor | float) -> Tensor:
        """Denoise x (B, C, H, W); sigma is a number or one level per image (B,)."""
        if x.ndim != 4:
            raise BadInput(f"a denoiser takes (batch, channel, height, width), got shape {tuple(x.shape)}")
        levels = noise_levels(sigma, x)
        if x.is_complex():
            return self._complex(x, levels)
        batch, channels, height, width = x.shape
        flat = x.reshape(batch * channels, 1, height, width)
        levels = levels.repeat_interleave(channels)[:, None, None, None]
        padded = F.pad(flat, (0, -width % self.multiple, 0, -height % self.multiple), mode="replicate")
        kind = next((parameter.dtype for parameter in self.parameters()), x.dtype)  # .half() may have changed it
        found = self.residual(padded.to(kind), levels.to(kind))[..., :height, :width]
        return (flat + found.to(flat.dtype)).reshape(x.shape)

    def _complex(self, x: Tensor, sigma: Tensor) -> Tensor:
        """Both parts in the image's own gauge, where the real part is a picture and the imaginary part has any sign."""
        turn = gauge(x)
        level = x * turn.conj()
        lift = level.imag.detach().abs().amax((1, 2, 3), keepdim=True)
        parts = self(torch.cat([level.real, level.imag + lift]), sigma.repeat(2))
        real, imaginary = parts.chunk(2)
        return torch.complex(real, imaginary - lift) * turn

    def signed(self, x: Tensor, sigma: Tensor) -> Tensor:
        """Denoise real images with values below zero, lifted to non-negative ones: networks have seen no others."""
        lift = x.detach().abs().amax((1, 2, 3), keepdim=True)
        return self(x + lift, sigma) - lift


def noise_levels(sigma: Tensor | float, x: Tensor) -> Tensor:
    """Sigma as (B,) in the real type and on the device of x, whether given as a number, (1,), (B,) or (B, 1, 1, 1)."""
    levels = torch.as_tensor(sigma, dtype=x.real.dtype, device=x.device).reshape(-1)
    if levels.numel() not in (1, x.shape[0]):
        raise BadInput(f"{levels.numel()} noise levels for a batch of {x.shape[0]} images: give one, or one per image")
    return levels.expand(x.shape[0])


def freeze(module: Module) -> Module:
    """Fix the weights, but let gradients pass: the policy learns through the denoiser."""
    return module.requires_grad_(False).eval()


def bf16_on_gpu(device: torch.device, wanted: bool = True) -> contextlib.AbstractContextManager[Any]:
    """bf16 on a GPU, where networks run several times faster with it; single precision elsewhere."""
    return torch.autocast("cuda", torch.bfloat16) if wanted and device.type == "cuda" else contextlib.nullcontext()


DENOISERS: Registry[Denoiser] = Registry("denoiser", __package__)


def build_denoiser(name: str, *, weights: str | Path | None = None, **options: Any) -> Denoiser:
    """The denoiser of that name, frozen, with its shipped weights or those in the folder `weights`."""
    from ..weights import has_weights, load_weights

    denoiser = DENOISERS[name](**options)
    if weights is not None or has_weights(name):
        denoiser.sha256 = load_weights(denoiser, name, None if weights is None else Path(weights))["sha256"]
    elif denoiser.needs_weights:
        raise BadWeights(
            f"no weights ship for the denoiser {name!r}: train it with `pnpilot train denoiser {name}` "
            "and pass the folder it writes as weights"
        )
    return freeze(denoiser)
