"""Pictures. Matplotlib is imported here, in `report.pictures` and for the wall, and only when a picture is drawn."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from .io.files import write_atomically
from .solvers import SOLVERS
from .types import Range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from .benchmark.examples import Example
    from .benchmark.strength import Strength

ERROR_RANGE = 0.15
"""Errors from here on are drawn in the brightest colour."""
NARROW = 1.5
"""Parameters that vary by less than this factor are drawn as if they varied by its square."""
LABELS = {"stop_probability": "probability to stop", "psnr": "PSNR (dB)"}


def compare_crops(path: str | Path, examples: Sequence[Example]) -> None:
    """The paper's visual comparison: for every example a part of each reconstruction, and under it its error."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    columns = 2 + max(len(example.images) for example in examples)
    figure = Figure(figsize=(1.6 * columns, 3.7 * len(examples)), layout="constrained", facecolor="white")
    axes = figure.subplots(2 * len(examples), columns, squeeze=False)
    for axis in axes.flat:
        axis.axis("off")
    for index, example in enumerate(examples):
        top, bottom = axes[2 * index], axes[2 * index + 1]
        rows, across = example.crop
        part = (..., rows, across)
        draw(top[0], example.truth)
        box = (across.start, rows.start), across.stop - across.start, rows.stop - rows.start
        top[0].add_patch(Rectangle(*box, fill=False, edgecolor="yellow", linewidth=1.2))
        top[0].set_title(example.title, fontsize=8)
        draw(top[1], example.truth[part])
        top[1].set_title("truth", fontsize=8)
        for column, (name, image) in enumerate(example.images.items(), 2):
            draw(top[column], image[part])
            top[column].set_title(f"{name}\n{example.captions[name]}", fontsize=8)
            error = (image.clamp(0, 1) - example.truth)[part].abs().mean(0)  # over the colours, where there are any
            bottom[column].imshow(error.numpy(), cmap="magma", vmin=0, vmax=ERROR_RANGE, interpolation="nearest")
        bottom[1].text(0.5, 0.5, f"absolute error\n0 to {ERROR_RANGE}", ha="center", va="center", fontsize=8)
    _save(figure, path)


def draw(axis: Axes, image: Tensor) -> None:
    """An image (1, H, W) in grey, or (3, H, W) in colour."""
    pixels = image.clamp(0, 1).movedim(0, -1).numpy()
    axis.imshow(pixels, cmap="gray", vmin=0, vmax=1, interpolation="nearest")


def plot_traces(path: str | Path, traces: Mapping[str, Mapping[str, Any]]) -> None:
    """The parameters over the iterations, one line per trace; all traces must have the same solver.

    A trace is a record of `Reconstruction.trace`; a list "psnr" in it, one value per decision, is drawn as well.
    """
    _save(trace_figure(traces), path)


def trace_figure(traces: Mapping[str, Mapping[str, Any]]) -> Figure:
    """What `plot_traces` draws."""
    from matplotlib.figure import Figure

    first = next(iter(traces.values()))
    ranges = {name: limits for name, limits in SOLVERS[first["solver"]].params.items() if _drawn(name, limits, traces)}
    extra = [name for name in ("stop_probability", "psnr") if any(trace.get(name) for trace in traces.values())]
    figure = Figure(figsize=(3.6 * (len(ranges) + len(extra)), 3.5), layout="constrained", facecolor="white")
    labels = {**LABELS, **{name: limits.symbol or name for name, limits in ranges.items()}}
    axes = dict(zip([*ranges, *extra], figure.subplots(1, len(ranges) + len(extra), squeeze=False)[0], strict=True))
    for name, trace in traces.items():
        for parameter, limits in ranges.items():
            values = [value / limits.unit for value in trace["parameters"].get(parameter, ())]
            axes[parameter].plot(range(1, len(values) + 1), values, label=name, marker=".")
        for kind in extra:
            (line,) = axes[kind].plot(trace["decided_at"][: len(trace.get(kind, []))], trace.get(kind, []), label=name)
            line.set_marker(".")
    for parameter in ranges:
        if any(value > 0 for trace in traces.values() for value in trace["parameters"].get(parameter, ())):
            axes[parameter].set_yscale("log")
            low, high = axes[parameter].get_ylim()
            if high < NARROW * low:  # a constant is drawn flat, not its rounding
                axes[parameter].set_ylim(low / NARROW, high * NARROW)
            _label(axes[parameter].yaxis)
    longest = max(trace["iterations"] for trace in traces.values())
    for name, axis in axes.items():
        axis.set_xlim(0, longest + 1)
        if name == "stop_probability":
            axis.set_ylim(0, 1)
        axis.set_ylabel(labels[name])
        axis.set_xlabel("iteration")
        axis.grid(alpha=0.3)
    handles, names = next(iter(axes.values())).get_legend_handles_labels()
    legend = figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)  # a dollar sign in a name is no formula
    return figure


def _drawn(name: str, limits: Range, traces: Mapping[str, Mapping[str, Any]]) -> bool:
    """What networks do not set is drawn only where something else set it."""
    values = (value for trace in traces.values() for value in trace["parameters"].get(name, ()))
    return limits.learned or any(value != limits.default for value in values)


def plot_strength(path: str | Path, found: Strength, names: Sequence[str], title: str) -> None:
    """PSNR over a constant denoising strength for several images, and where a policy ended."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained", facecolor="white")
    axis = figure.subplots()
    sigma = (255 * found.sigma).tolist()
    for index, name in enumerate(names):
        curve = found.curves[:, index]
        (line,) = axis.plot(sigma, curve, label=name)
        best = int(curve.argmax())
        axis.plot(sigma[best], curve[best], "o", color=line.get_color(), fillstyle="none", markersize=8)
        axis.plot(255 * found.chosen[index], found.reached[index], "*", color=line.get_color(), markersize=13)
    axis.plot([], [], "o", color="grey", fillstyle="none", label="best constant σ")
    axis.plot([], [], "*", color="grey", markersize=11, label="learned policy, at its mean σ")
    axis.set_xscale("log")
    _label(axis.xaxis)
    axis.set_xlabel("denoising strength σ × 255")
    axis.set_ylabel("PSNR (dB)")
    axis.set_title(title, fontsize=11)
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=8)
    _save(figure, path)


def _label(axis: Axis) -> None:
    """Plain numbers along a logarithmic axis, few enough not to overlap."""
    from matplotlib.ticker import LogLocator

    axis.set_minor_locator(LogLocator(subs=(2, 3, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("{x:g}")


def png(figure: Figure, transparent: bool = False, dpi: int = 130) -> bytes:
    """The figure as a PNG file, with its own background or with none."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, transparent=transparent)
    return buffer.getvalue()


def _save(figure: Figure, path: str | Path) -> None:
    write_atomically(Path(path), png(figure))
