"""Photographs and micrographs that were blurred by a known point-spread function."""

from __future__ import annotations

import numpy as np
import torch

from ...errors import BadInput, PnPilotError, require
from ...io.raw import COLOUR, NOT_IMAGES, Raw, Scratch
from ..options import Options
from ..psf import point_spread
from ..simulate import with_plane
from ._picture import BlurredPicture, noise_of_pixels
from .base import MODALITIES, Modality

PER_PIXEL = 300
"""Bytes per pixel and colour that convolutions take, and conjugate gradients."""
BEYOND = 1500
"""Bytes per pixel of the border, as much as the denoiser takes inside."""
SMALLEST = 16
"""Sides of the smallest picture: of smaller ones neither noise nor scale can be told."""


@MODALITIES.register("photograph")
class Photograph(Modality):
    """Photographs and micrographs, grey or in colour, with the point-spread function that blurred them."""

    steps = {
        "background": "take the flat background off a point-spread function",
        "centring": "take the centre of mass of a point-spread function for its centre; else the middle of its file",
        "photons": "weigh pixels by the noise of photons, where pictures show it",
    }
    uses = frozenset({"psf"})

    @classmethod
    def takes(cls, raw: Raw, options: Options) -> bool:
        """Pictures of any format, once the blur is known."""
        return raw.pictures and options.psf is not None and options.simulate is None

    def __init__(self, raw: Raw, options: Options, scratch: Scratch) -> None:  # noqa: ARG002
        assert raw.measured is not None
        self.options, self.notes = options, list(raw.notes)
        self.stored = with_plane(raw.measured, options.names)
        self.axes = self.stored.axes or ()
        self.lengths = dict(zip(self.axes, map(int, self.stored.data.shape), strict=True))
        wrong = [axis for axis in self.axes if axis in NOT_IMAGES - {"y", "x", COLOUR} and self.lengths[axis] > 1]
        require(not wrong, f"pictures have rows and columns, y and x, and no axis {', '.join(wrong)}")
        self.channels = self.lengths.get(COLOUR, 1)
        require(self.channels in (1, 3), f"it has {self.channels} colours: one or three are accepted")
        self.sizes = self.lengths["y"], self.lengths["x"]
        require(
            min(self.sizes) >= SMALLEST, f"its sides are {self.sizes}: pictures have at least {SMALLEST} pixels a side"
        )
        self.counting = tuple(axis for axis in self.axes if axis not in NOT_IMAGES and self.lengths[axis] > 1)
        self.shape = tuple(self.lengths[axis] for axis in self.counting)
        self.pixels = np.dtype(self.stored.data.dtype)
        self.step = 1.0 if self.pixels.kind in "ui" else 0.0
        try:
            self.kernel = self._kernel(raw)
        except PnPilotError as error:
            raise BadInput(f"{options.psf}: {error}") from error

    def _kernel(self, raw: Raw) -> torch.Tensor:
        wanted = {step: not self.options.skips(step) for step in ("background", "centring")}
        kernel, said = point_spread(raw.beside["psf"], **wanted)
        require(
            len(kernel) <= self.channels, "the point-spread function is in colour, and the picture in shades of grey"
        )
        height, width = kernel.shape[1:]
        require(
            height <= self.sizes[0] and width <= self.sizes[1],
            f"the point-spread function spreads light over {height}×{width} pixels, and the picture has "
            f"{self.sizes[0]}×{self.sizes[1]}",
        )
        self.notes += [*said.values(), f"the point-spread function reaches {height // 2} rows and {width // 2} columns"]
        return torch.from_numpy(kernel)

    def __getitem__(self, number: int) -> BlurredPicture:
        where = self.place(number)
        kept = [axis for axis in self.axes if axis in ("y", "x", COLOUR)]
        index = tuple(slice(None) if axis in kept else where.get(axis, 0) for axis in self.axes)
        pixels = np.asarray(self.stored.data[index]).astype(np.float32)
        pixels = pixels.transpose([kept.index(axis) for axis in (COLOUR, "y", "x") if axis in kept])
        y = torch.from_numpy(np.ascontiguousarray(pixels)).reshape(self.channels, *self.sizes)
        require(bool(y.isfinite().all()), f"image {number}: it holds NaN or infinite values")
        noise, said = noise_of_pixels(y, self.step, not self.options.skips("photons"))
        return BlurredPicture(number, y, self.kernel, noise, said)

    def cost(self) -> int:
        """Convolutions, and the border that was not measured."""
        inside = self.sizes[0] * self.sizes[1]
        whole = (self.sizes[0] + self.kernel.shape[1]) * (self.sizes[1] + self.kernel.shape[2])
        return self.channels * (PER_PIXEL * whole + BEYOND * (whole - inside))
