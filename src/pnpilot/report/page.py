"""One HTML page that opens anywhere: no network, no scripts, pictures inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .content import Content
from .markup import counted, items, pairs, picture, section, text
from .table import ROWS, table

PICTURES = 6
"""More would make the page heavy."""
WARNINGS = 20
"""More would hide the rest of the page."""
NAMES = 5
"""Images that are named with a warning they share."""
STYLE = Path(__file__).with_name("style.css")
# Even if markup slipped in from a file, a browser would not run or fetch anything.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
EXPLAINED = (
    "The start is a smooth image that fits the data, without a denoiser (of a single coil: zero-filled). Start and "
    "result have the same grey scale. The map shows what the data still object to in the result, in units of the "
    "noise: structure in it is missing in the result, or too strong there."
)
LINES = "One line per image; of many images, a few from the first to the last."


def page(content: Content, pictures: Sequence[tuple[str, bytes]] = (), curves: bytes | None = None) -> str:
    """The page, with pictures as PNG files with captions, and one of the parameters over the iterations."""
    warnings = _warnings(content)
    told = items(warnings[:WARNINGS]) + _more(len(warnings) - WARNINGS)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{text(Path(content["file"]).name)} – PnPilot</title>
<style>
{STYLE.read_text(encoding="utf-8")}</style>
</head>
<body>
<header>
<h1>{text(Path(content["file"]).name)}</h1>
<p class="verdict">{_verdict(content, len(warnings))}</p>
<p class="note">{text(content["created"])}, on {text(content["device"])}</p>
</header>
<main>
{section("Warnings", told, "warnings")}\
{section("Pictures", _pictures(pictures))}\
{section("What was done", _steps(content))}\
{section("Images", table(content["images"]))}\
{section("Parameters over the iterations", picture(LINES, curves, "curves") if curves else "")}\
{section("Time", _times(content["seconds"]))}\
{section("Files written", items(f"<code>{text(name)}</code>" for name in content["written"]))}\
{section("Versions", pairs(content["versions"].items()))}\
{section("Command", f"<pre>{text(content['command'])}</pre>")}\
{_whole(content)}\
</main>
</body>
</html>
"""


def _verdict(content: Content, warnings: int) -> str:
    empty = sum(image["empty"] for image in content["images"])
    done = len(content["images"]) - empty
    said = f"{counted(done, 'image')} reconstructed" if done else "No image was reconstructed"
    said += f", {empty} had nothing to reconstruct" if empty else ""
    return f"{said}; {counted(warnings, 'warning') if warnings else 'no warnings'}."


def _warnings(content: Content) -> list[str]:
    """Those of the file, then those of images; what several images share is said once."""
    shared: dict[str, list[str]] = {}
    for image in content["images"]:
        for warning in dict.fromkeys(image["warnings"]):
            shared.setdefault(warning, []).append(image["name"])
    return [
        *map(text, content["warnings"]),
        *(f"<b>{text(_named(names))}</b>: {text(warning)}" for warning, names in shared.items()),
    ]


def _named(names: Sequence[str]) -> str:
    more = len(names) - NAMES
    return ", ".join(names[:NAMES]) + (f" and {more} more" if more > 0 else "")


def _more(count: int) -> str:
    return f'\n<p class="note">{counted(count, "more warning")} in the JSON file.</p>' if count > 0 else ""


def _pictures(pictures: Sequence[tuple[str, bytes]]) -> str:
    shown = [picture(caption, png, "panels") for caption, png in pictures[:PICTURES]]
    return "\n".join([f'<p class="note">{EXPLAINED}</p>', *shown]) if shown else ""


def _steps(content: Content) -> str:
    read = content["read"]
    axes = " × ".join(f"{name} {length}" for name, length in read["axes"].items())
    lines = [f"<b>reading</b>: {text(read['reader'])}, {text(axes)}", *map(text, read["notes"])]
    for step in content["prepared"]:
        name = f"<b>{text(step['step'])}</b>" if step["done"] else f"<i>{text(step['step'])}, left out</i>"
        lines.append(f"{name}: {text(step['said'])}")
    return items(lines)


def _times(seconds: dict[str, float]) -> str:
    rows = [(name, f"{spent:.1f} s") for name, spent in seconds.items()]
    return pairs([*rows, ("in all", f"{sum(seconds.values()):.1f} s")] if len(rows) > 1 else rows)


def _whole(content: Content) -> str:
    few = len(content["images"]) > ROWS
    part = {**content, "images": content["images"][:ROWS]} if few else content
    title = f"All of it as JSON{f', with the first {ROWS} images' if few else ''}"
    return f"<details>\n<summary>{title}</summary>\n<pre>{text(_json(part))}</pre>\n</details>\n"


def _json(value: Any, margin: str = "") -> str:
    """JSON with one line for what fits on one, and for each list of numbers."""
    flat = json.dumps(value, ensure_ascii=False)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if len(flat) < 100 or not any(isinstance(part, (dict, list, str)) for part in parts):
        return flat
    inner = margin + "  "
    if isinstance(value, dict):
        lines = [f"{json.dumps(key, ensure_ascii=False)}: {_json(part, inner)}" for key, part in value.items()]
    else:
        lines = [_json(part, inner) for part in value]
    return f"{flat[0]}\n{inner}" + f",\n{inner}".join(lines) + f"\n{margin}{flat[-1]}"
