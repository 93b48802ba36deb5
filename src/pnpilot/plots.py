"""Pictures. Matplotlib is imported here alone, and only when a picture is drawn."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from .io.files import write_atomically
from .types import Range

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ERROR_RANGE = 0.15
"""Errors from here on are drawn white."""
LABELS = {"sigma": "σ × 255", "mu": "μ", "tau": "τ", "beta": "β", "lam": "λ"}


def compare_images(path: Path, truth: Tensor, images: Mapping[str, Tensor], captions: Mapping[str, str]) -> None:
    """Reconstructions in a row, and under each its error map; all tensors (H, W) in [0, 1]."""
    from matplotlib.figure import Figure

    columns = {"truth": truth, **images}
    height, width = truth.shape
    scale = 2.4
    figure = Figure(
        figsize=(scale * len(columns), 2 * scale * height / width + 0.6), layout="constrained", facecolor="white"
    )
    axes = figure.subplots(2, len(columns), squeeze=False)
    shown = None
    for column, (name, image) in enumerate(columns.items()):
        top, bottom = axes[:, column]
        top.imshow(image.clamp(0, 1), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        top.set_title(f"{name}\n{captions.get(name, '')}", fontsize=10)
        if name == "truth":
            bottom.text(0.5, 0.5, "absolute error", ha="center", va="center", fontsize=10)
        else:
            shown = bottom.imshow(
                (image - truth).abs(), cmap="magma", vmin=0, vmax=ERROR_RANGE, interpolation="nearest"
            )
        top.axis("off")
        bottom.axis("off")
    if shown is not None:
        figure.colorbar(shown, ax=axes[1, :].tolist(), fraction=0.012, pad=0.01)
    _save(figure, path)


def plot_parameters(
    path: Path, ranges: Mapping[str, Range], runs: Mapping[str, Mapping[str, Sequence[float]]], psnr: Mapping[str, Any]
) -> None:
    """Parameters and PSNR over iterations, one line per policy."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.0 * (len(ranges) + 1), 3.2), layout="constrained", facecolor="white")
    axes = figure.subplots(1, len(ranges) + 1, squeeze=False)[0]
    for axis, (name, limits) in zip(axes, ranges.items(), strict=False):
        for policy, values in runs.items():
            axis.plot(
                range(1, len(values[name]) + 1),
                [value / limits.unit for value in values[name]],
                label=policy,
                marker=".",
            )
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("{x:g}")
        axis.set_ylabel(LABELS.get(name, name))
    for policy, curve in psnr.items():
        axes[-1].plot(range(1, len(curve) + 1), curve, label=policy, marker=".")
    axes[-1].set_ylabel("PSNR (dB)")
    for axis in axes:
        axis.set_xlabel("iteration")
        axis.grid(alpha=0.3)
    axes[-1].legend(frameon=False)
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    write_atomically(path, buffer.getvalue())
