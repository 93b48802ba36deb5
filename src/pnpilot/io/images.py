"""Grey images in [0, 1]."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from ..errors import BadInput

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff"}


def image_paths(folder: Path) -> list[Path]:
    """All images in the folder and below it, in a stable order."""
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder}")
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    if not paths:
        raise BadInput(f"no images in {folder} (looked for {', '.join(sorted(SUFFIXES))})")
    return paths


def read_grey(path: Path, size: tuple[int, int] | None = None) -> np.ndarray:
    """A uint8 image (H, W), resized to that height and width by bicubic interpolation if asked."""
    try:
        with Image.open(path) as file:
            image = _eight_bit(file, path)
    except (OSError, UnidentifiedImageError) as error:
        raise BadInput(f"{path} is not a readable image: {error}") from error
    if size is not None and image.size != size[::-1]:
        image = image.resize(size[::-1], Image.Resampling.BICUBIC)
    return np.asarray(image)


def _eight_bit(image: Image.Image, path: Path) -> Image.Image:
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image).astype(np.float32) / 257).round().astype(np.uint8))
    if image.mode in ("I", "F"):  # Pillow would clip them
        raise BadInput(f"{path} has pixels of type {image.mode}; images of 8 or 16 bits are accepted")
    return image.convert("L")


def read_image(path: Path, size: tuple[int, int] | None = None) -> Tensor:
    """An image as (1, H, W) in [0, 1]."""
    return torch.from_numpy(read_grey(path, size).copy())[None].float() / 255
