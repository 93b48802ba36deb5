"""A comparison in Markdown: a table per test set and score, the best marked, the paper's numbers beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.table import Table

Row = Mapping[str, Any]
ABOUT_PAPER = {
    "brain50": ", on its MICCAI. Very likely the same images, not proven.",
    "medical4": ", on its Medical7. Four of its seven images are here, so the means cannot be compared.",
    "phase12": ", on the same twelve images. It has one row for HIO and does not say in which reading.",
}
"""What to know of the paper's numbers."""


def markdown(title: str, rows: Sequence[Row], command: str) -> str:
    """The whole report."""
    parts = [f"# {title}", f"`{command}`", "**best** and *second best* of a row."]
    for dataset in _distinct(rows, "dataset"):
        own = [row for row in rows if row["dataset"] == dataset]
        parts += [f"## {dataset}", f"Means over {own[0]['count']} reconstructions."]
        parts += ["### PSNR in dB", psnr_table(own)]
        if any(row["paper"] for row in own):
            parts.append(f"† as the paper printed it{ABOUT_PAPER.get(dataset, '.')}")
        parts += _spreads(own)
        parts += ["### SSIM", _table(own, "ssim", "{:.4f}", best=True)]
        parts += ["### Iterations", _table(own, "iterations", "{:.1f}")]
        parts += [f"### Seconds per image{_where(own)}", _table(own, "seconds", "{:.3f}")]
    return "\n\n".join(parts) + "\n"


def psnr_table(rows: Sequence[Row]) -> str:
    """Settings down, methods across, then what the paper has for those of them that it has too."""
    methods = _distinct([row for row in rows if row["paper"]], "method")

    def printed(setting: str) -> list[str]:
        values = {row["method"]: row["paper"] for row in rows if row["setting"] == setting}
        return _marked([values.get(name) for name in methods], "{:.2f}")

    return _table(rows, "psnr", "{:.2f}", best=True, more=[f"{name} †" for name in methods], cells=printed)


def show(rows: Sequence[Row], console: Console) -> None:
    """Print one line per cell; best in bold, second best underlined."""
    table = Table(box=None, header_style="bold")
    for name in ("dataset", "setting", "method"):
        table.add_column(name, no_wrap=True)
    for name in ("PSNR", "SSIM", "iterations", "seconds", "paper's PSNR"):
        table.add_column(name, justify="right")
    styles = {"best": "bold", "second": "underline", "": ""}
    for (dataset, setting), group in groupby(rows, lambda row: (row["dataset"], row["setting"])):
        own = list(group)
        for row, mark in zip(own, marks([row["psnr"] for row in own], "{:.2f}"), strict=True):
            numbers = (f"{row['ssim']:.4f}", f"{row['iterations']:.1f}", f"{row['seconds']:.3f}")
            score = f"[{styles[mark]}]{row['psnr']:.2f}[/]" if mark else f"{row['psnr']:.2f}"
            table.add_row(dataset, setting, row["method"], score, *numbers, _number(row["paper"], "{:.2f}"))
        table.add_section()
    console.print(table)


def marks(values: Sequence[float | None], form: str) -> list[str]:
    """Which values are best and second best as they are printed; equal ones share a place."""
    shown = [None if value is None else float(form.format(value)) for value in values]
    ranked = sorted({value for value in shown if value is not None}, reverse=True)
    places = dict(zip(ranked, ("best", "second"), strict=False))
    return ["" if value is None else places.get(value, "") for value in shown]


def _table(
    rows: Sequence[Row],
    score: str,
    form: str,
    *,
    best: bool = False,
    more: Sequence[str] = (),
    cells: Callable[[str], Iterable[str]] = lambda _: (),
) -> str:
    methods = _distinct(rows, "method")
    lines = [["", *methods, *more], ["---"] * (1 + len(methods) + len(more))]
    for setting in _distinct(rows, "setting"):
        own = {row["method"]: row[score] for row in rows if row["setting"] == setting}
        values = [own.get(name) for name in methods]
        shown = _marked(values, form) if best else [_number(value, form) for value in values]
        lines.append([setting, *shown, *(cells(setting) if more else ())])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _marked(values: Sequence[float | None], form: str) -> list[str]:
    around = {"best": "**{}**", "second": "*{}*", "": "{}"}
    return [around[mark].format(_number(value, form)) for value, mark in zip(values, marks(values, form), strict=True)]


def _number(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _distinct(rows: Sequence[Row], key: str) -> list[str]:
    return list(dict.fromkeys(row[key] for row in rows))


def _where(rows: Sequence[Row]) -> str:
    """The device, or which method ran on which."""
    devices = {row["method"]: row["device"] for row in rows}
    if len(set(devices.values())) == 1:
        return f", {next(iter(devices.values()))}"
    return ", " + "; ".join(f"{method}: {device}" for method, device in devices.items())


def _spreads(rows: Sequence[Row]) -> list[str]:
    """How much the means differ between seeds of noise and between draws of masks, where there are several."""
    parts = []
    for kind, words in {"seeds": "seeds of noise", "draws": "draws of masks"}.items():
        own = [{**row, kind: row["spread"][kind]} for row in rows]
        if any(row[kind] is not None for row in own):
            title = f"### Largest less smallest mean PSNR of the {words}"
            parts += [title, _table(own, kind, "{:.2f}")]
    return parts
