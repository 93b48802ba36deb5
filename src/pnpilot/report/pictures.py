"""The pictures of a report, as PNG. Their background is transparent: pages are light or dark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..plots import png, trace_figure

BRIGHTEST = 0.999
"""This share of an image's pixels is not clipped: one bright pixel must not make all others dark."""
MOST_OBJECTION = 5
"""Objections from here on are drawn in the brightest colour. Noise alone hardly gets there."""
GREY = "#757575"
"""Letters that can be read on white and on black."""
WIDTH = 8.4
"""Inches of three panels with their colour bar."""


def panels(start: Any, result: Any, objection: Any) -> bytes:
    """Start, result, and what the data still object to in it, in units of the noise: arrays (rows, columns).

    The first two may be in colour, (3, rows, columns).
    """
    from matplotlib.figure import Figure

    before, after, against = (_magnitude(image) for image in (start, result, objection))
    top = float(np.quantile(after, BRIGHTEST)) or 1.0
    height = WIDTH / 3.35 * np.clip(after.shape[-2] / after.shape[-1], 0.3, 2)
    figure = Figure(figsize=(WIDTH, height + 0.3), layout="constrained")
    axes = figure.subplots(1, 3)
    for axis, image, title in zip(axes, (before, after), ("start", "result"), strict=False):
        drawn_as = np.moveaxis(image / top, 0, -1).clip(0, 1) if image.ndim == 3 else image
        axis.imshow(drawn_as, cmap="gray", vmin=0, vmax=top)
        axis.set_title(title, fontsize=9, color=GREY)
    drawn = axes[2].imshow(against, cmap="magma", vmin=0, vmax=MOST_OBJECTION)
    axes[2].set_title("what the data still object to", fontsize=9, color=GREY)
    for axis in axes:
        axis.axis("off")
    beside = axes[2].inset_axes((1.04, 0, 0.05, 1))
    bar = figure.colorbar(drawn, cax=beside, extend="max", label="in units of the noise")
    bar.ax.yaxis.label.set(fontsize=8, color=GREY)
    bar.ax.tick_params(labelsize=8, color=GREY, labelcolor=GREY)
    bar.ax.spines["outline"].set_visible(False)
    return png(figure, transparent=True)


def curves(traces: Mapping[str, Mapping[str, Any]]) -> bytes:
    """The parameters over the iterations, one line per trace, in black letters; all must have the same solver."""
    return png(trace_figure(traces), transparent=True)


def _magnitude(image: Any) -> np.ndarray:
    return np.nan_to_num(np.abs(np.asarray(image)), posinf=0.0)
