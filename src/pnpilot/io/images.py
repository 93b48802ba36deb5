"""Grey and colour images in [0, 1]."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from ..errors import BadInput, first_line, require

if TYPE_CHECKING:
    from torch import Tensor

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff"}
FORMATS = ("PNG", "JPEG", "BMP", "TIFF")
"""What is read, whatever the suffix says."""
MOST_PIXELS = 2**26
"""8192 × 8192: a small file may claim any number of pixels, and would take the memory for them."""
TOO_LARGE = f"it has more than {MOST_PIXELS / 1e6:.0f} million pixels, the most that are accepted"


def image_paths(folder: Path) -> list[Path]:
    """All images in the folder and below it, in a stable order."""
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder}")
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and not path.is_dir())
    if not paths:
        raise BadInput(f"no images in {folder} (looked for {', '.join(sorted(SUFFIXES))})")
    return paths


def read_grey(path: Path, size: tuple[int, int] | None = None) -> np.ndarray:
    """A uint8 image (H, W), resized to that height and width by bicubic interpolation if asked."""
    return _pixels(path, size, "L")


def _pixels(path: Path, size: tuple[int, int] | None, mode: str) -> np.ndarray:
    image = _eight_bit(path, mode)
    if size is not None and image.size != size[::-1]:
        image = image.resize(size[::-1], Image.Resampling.BICUBIC)
    return np.asarray(image)


def _eight_bit(path: Path, mode: str) -> Image.Image:
    with opened(path) as file:
        if file.mode.startswith("I;16"):
            grey = (np.asarray(file).astype(np.float32) / 257).round().astype(np.uint8)
            return Image.fromarray(grey).convert(mode)
        # Pillow would clip these.
        require(
            file.mode not in ("I", "F"),
            f"its pixels are of type {file.mode}; images of 8 or 16 bits are accepted",
        )
        return file.convert(mode)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Image.Image]:
    """A picture whose size was checked, not yet decoded; whatever goes wrong with it is told as BadInput."""
    try:
        require(path.is_file(), "there is no such file")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sizes, which are checked here, and about what is not used
            with Image.open(path, formats=FORMATS) as file:
                width, height = file.size
                require(min(width, height) > 0, "it is empty")
                require(width * height <= MOST_PIXELS, TOO_LARGE)
                yield file
    except Image.DecompressionBombError as error:  # Pillow checks its own limit first
        raise BadInput(f"{path} is not a readable image: {TOO_LARGE}") from error
    except Exception as error:  # damaged files make the decoders raise nearly anything
        raise BadInput(f"{path} is not a readable image: {first_line(error)}") from error


def page(file: Image.Image) -> np.ndarray:
    """The page at which an opened picture stands, at its own depth: (H, W), or (H, W, 3) in colour."""
    if file.mode.startswith("I;16"):
        return np.asarray(file).astype(np.uint16)
    grey = file.mode in ("1", "L", "LA", "I", "F")
    return np.asarray(file if file.mode in ("I", "F") else file.convert("L" if grey else "RGB"))


def read_image(path: Path, size: tuple[int, int] | None = None, channels: int = 1) -> Tensor:
    """An image as (1, H, W) in [0, 1], or in colour as (3, H, W)."""
    import torch  # takes seconds; readers of files need only what is above

    pixels = torch.from_numpy(_pixels(path, size, "RGB" if channels == 3 else "L").copy())
    return pixels.reshape(*pixels.shape[:2], -1).permute(2, 0, 1).contiguous().float() / 255
