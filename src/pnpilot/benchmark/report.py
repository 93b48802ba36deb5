"""Rows as tables: on the terminal, and in Markdown with the best marked and the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.table import Table as ScreenTable
from rich.text import Text

Row = Mapping[str, Any]
FORMS = {"psnr": "{:.2f}", "ssim": "{:.4f}", "iterations": "{:.1f}", "seconds": "{:.3f}"}
"""How numbers are printed; others have two decimals."""
MORE_IS_BETTER = ("psnr", "ssim", "paper")
STYLES = {"best": "bold", "second": "underline", "": ""}
AROUND = {"best": "**{}**", "second": "*{}*", "": "{}"}
SPREADS = {"seeds": "seeds of noise", "draws": "draws of operators"}


def show(rows: Sequence[Row], console: Console) -> None:
    """Print one line per row; of several methods in one setting the best is bold, the second best underlined."""
    rows = [_flat(row) for row in rows]
    extra = {"seeds": "spread of\nseeds", "draws": "spread of\ndraws", "paper": "paper's\nPSNR"}
    extra = {key: title for key, title in extra.items() if any(row[key] is not None for row in rows)}
    table = ScreenTable(box=None, header_style="bold")
    for name in ("dataset", "setting", "method"):
        table.add_column(name, no_wrap=True)
    for name in ("PSNR", "SSIM", "iterations", "seconds", *extra.values()):
        table.add_column(name, justify="right")
    for (dataset, setting), group in groupby(rows, lambda row: (row["dataset"], row["setting"])):
        own = list(group)
        places = marks([row["psnr"] for row in own], FORMS["psnr"]) if len(own) > 1 else [""]
        for row, place in zip(own, places, strict=True):
            first, *others = (number(row[key], key) for key in (*FORMS, *extra))
            # Text, as names may hold brackets.
            words = (Text(dataset), Text(setting), Text(row["method"]), Text(first, STYLES[place]))
            table.add_row(*words, *others)
        table.add_section()
    console.print(table)


def markdown(title: str, rows: Sequence[Row], command: str, notes: Mapping[str, str]) -> str:
    """A whole report: a table per test set and score; `notes` explain the paper's numbers."""
    parts = [f"# {title}", f"`{command}`", "**best** and *second best* of a row."]
    for dataset in distinct(rows, "dataset"):
        own = [row for row in rows if row["dataset"] == dataset]
        parts += [f"## {dataset}", f"Means over {own[0]['count']} reconstructions."]
        parts += ["### PSNR in dB", psnr_table(own)]
        if any(row["paper"] is not None for row in own):
            parts.append(f"† as the paper printed it{', ' + notes[dataset] if dataset in notes else '.'}")
        for kind, words in SPREADS.items():
            if any(row["spread"][kind] is not None for row in own):
                parts += [f"### Largest less smallest mean PSNR of the {words}", grid(own, kind)]
        parts += ["### SSIM", grid(own, "ssim"), "### Iterations", grid(own, "iterations")]
        parts += [f"### Seconds per image{_where(own)}", grid(own, "seconds")]
    return "\n\n".join(parts) + "\n"


def psnr_table(rows: Sequence[Row]) -> str:
    """Our PSNR, then the paper's, for the methods that it has."""
    return grid(rows, "psnr", "paper")


def grid(rows: Sequence[Row], *keys: str) -> str:
    """Settings down, methods across, in Markdown: a block of columns for each key that any method has."""
    rows = [_flat(row) for row in rows]
    blocks = [(keys[0], distinct(rows, "method"))]
    blocks += [(key, distinct([row for row in rows if row.get(key) is not None], "method")) for key in keys[1:]]
    headers = [name + (" †" if key == "paper" else "") for key, methods in blocks for name in methods]
    lines = []
    for setting in distinct(rows, "setting"):
        own = {row["method"]: row for row in rows if row["setting"] == setting}
        cells: list[str] = []
        for key, methods in blocks:
            cells += _marked([own.get(name, {}).get(key) for name in methods], key)
        lines.append([setting, *cells])
    return table(["", *headers], lines)


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, ["---"] * len(header), *lines))


def marks(values: Sequence[float | None], form: str) -> list[str]:
    """Which values are best and second best as they are printed; equal ones share a place."""
    shown = [None if value is None else float(form.format(value)) for value in values]
    ranked = sorted({value for value in shown if value is not None}, reverse=True)
    places = dict(zip(ranked, ("best", "second"), strict=False))
    return ["" if value is None else places.get(value, "") for value in shown]


def number(value: float | None, key: str) -> str:
    """A number as it is printed, or nothing."""
    return "" if value is None else FORMS.get(key, "{:.2f}").format(value)


def distinct(rows: Sequence[Row], key: str) -> list[str]:
    """The values of a key, in the order in which they come."""
    return list(dict.fromkeys(row[key] for row in rows))


def _flat(row: Row) -> dict[str, Any]:
    """The row with each spread as a value of its own."""
    return {**row, **row["spread"]}


def _marked(values: Sequence[float | None], key: str) -> list[str]:
    places = marks(values, FORMS.get(key, "{:.2f}")) if key in MORE_IS_BETTER else [""] * len(values)
    return [AROUND[place].format(number(value, key)) for value, place in zip(values, places, strict=True)]


def _where(rows: Sequence[Row]) -> str:
    """The device, or which method ran on which."""
    devices = {row["method"]: row["device"] for row in rows}
    if len(set(devices.values())) == 1:
        return f", {next(iter(devices.values()))}"
    return ", " + "; ".join(f"{method}: {device}" for method, device in devices.items())
