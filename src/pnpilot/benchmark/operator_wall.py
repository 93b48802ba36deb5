"""The wall of pictures: for every operator the truth, the start, ours with its error, and the best of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from ..io.files import write_atomically
from ..metrics import psnr
from ..plots import ERROR_RANGE, draw, png
from ..safety import SAFE
from .operator_methods import PEERS
from .operator_table import Shown

MANY = 10
"""Lines from which on there are two columns of them."""
FINE = 76
"""Dots per inch: small enough for a page."""


class Tile(NamedTuple):
    """A picture of the wall."""

    caption: str
    image: Tensor
    """(1, H, W), or (3, H, W) in colour."""
    is_error: bool = False


def draw_wall(path: Path, shown: Sequence[Shown]) -> None:
    """A line of tiles for each operator; where a method does not apply, its place is empty."""
    picture_wall(path, {own.title: _tiles(own) for own in shown})


def picture_wall(path: Path, lines: Mapping[str, Sequence[Tile | None]]) -> None:
    """Tiles side by side under a title for each line; errors are drawn in colours of their own."""
    from matplotlib.figure import Figure

    length, across = max(map(len, lines.values())), 1 if len(lines) < MANY else 2
    rows = -(-len(lines) // across)
    figure = Figure(figsize=(1.45 * length * across, 1.6 * rows), layout="constrained", facecolor="white")
    axes = figure.subplots(rows, length * across, squeeze=False)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[], frame_on=False)
    for place, (title, tiles) in enumerate(lines.items()):
        line = axes[place % rows, place // rows * length :]
        line[0].set_ylabel(title, fontsize=7)
        for axis, tile in zip(line, tiles, strict=False):
            if tile is None:
                continue
            axis.set_title(tile.caption, fontsize=6.5, pad=2)
            if tile.is_error:
                axis.imshow(tile.image[0].numpy(), cmap="magma", vmin=0, vmax=ERROR_RANGE, interpolation="antialiased")
            else:
                draw(axis, tile.image)
    write_atomically(path, png(figure, dpi=FINE))


def _tiles(shown: Shown) -> list[Tile | None]:
    peers = [name for name in PEERS if name in shown]
    best = max(peers, key=lambda name: _score(shown, name), default="")
    tiles: list[Tile | None] = [Tile("truth", shown.truth), _tile(shown, "start")]
    for name in (SAFE, best):
        tiles += [_tile(shown, name), _error(shown, name)]
    return tiles


def _tile(shown: Shown, name: str) -> Tile | None:
    return Tile(f"{name} {_score(shown, name):.2f} dB", shown[name]) if name in shown else None


def _error(shown: Shown, name: str) -> Tile | None:
    if name not in shown:
        return None
    error = (shown[name].clamp(0, 1) - shown.truth).abs().mean(0, keepdim=True)
    return Tile("error", error, is_error=True)


def _score(shown: Shown, name: str) -> float:
    image: Tensor = shown[name]
    return psnr(image[None], shown.truth[None]).item()
