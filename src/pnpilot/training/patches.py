"""Random patches from a folder of images, cut on the device without a data loader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..errors import BadInput
from ..io.images import image_paths, read_grey


class PatchSource:
    """All images as one flat byte buffer on the device; a batch of patches is one gather."""

    def __init__(self, images: list[np.ndarray], patch: int, device: torch.device) -> None:
        images = [image for image in images if min(image.shape) >= patch]
        if not images:
            raise BadInput(f"no training image is at least {patch}×{patch}")
        heights, widths = np.array([image.shape for image in images]).T
        areas = heights.astype(np.int64) * widths
        self.patch = patch
        self.pixels = torch.from_numpy(np.concatenate([image.reshape(-1) for image in images])).to(device)
        self.offsets = torch.from_numpy(np.cumsum(areas) - areas).to(device)
        self.heights, self.widths = torch.from_numpy(heights).to(device), torch.from_numpy(widths).to(device)
        # Images are drawn in proportion to their area.
        self.chances = torch.from_numpy(areas / areas.sum()).to(device)

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Patches (count, 1, patch, patch) in [0, 1], each turned and flipped at random."""
        device = self.pixels.device
        which = torch.multinomial(self.chances, count, replacement=True, generator=generator)
        top, left, flips = torch.rand(3, count, 1, 1, device=device, generator=generator)
        rows_free = (self.heights[which] - self.patch + 1)[:, None, None]
        columns_free = (self.widths[which] - self.patch + 1)[:, None, None]
        ramp = torch.arange(self.patch, device=device)
        eighth = (flips * 8).long()
        down, right = ramp[:, None].expand(count, -1, self.patch), ramp[None, :].expand(count, self.patch, -1)
        down, right = torch.where(eighth < 4, down, right), torch.where(eighth < 4, right, down)
        down = torch.where(eighth % 2 == 0, down, self.patch - 1 - down)
        right = torch.where(eighth % 4 < 2, right, self.patch - 1 - right)
        rows = (top * rows_free).long() + down
        columns = (left * columns_free).long() + right
        index = self.offsets[which][:, None, None] + rows * self.widths[which][:, None, None] + columns
        return self.pixels[index][:, None].float() / 255


def corners(images: Sequence[np.ndarray], size: int) -> Tensor:
    """The top left corner of each image that is large enough (N, 1, size, size), in [0, 1]; there may be none."""
    found = [torch.from_numpy(image[:size, :size].copy()) for image in images if min(image.shape) >= size]
    return torch.stack(found)[:, None].float() / 255 if found else torch.empty(0, 1, size, size)


def read_split(folder: Path, held_out: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The images of a folder as (training, validation)."""
    paths = image_paths(folder)
    order = np.random.default_rng(seed).permutation(len(paths))
    held_out = min(held_out, len(paths) // 2)
    images = [read_grey(paths[index]) for index in order]
    return images[held_out:], images[:held_out]
