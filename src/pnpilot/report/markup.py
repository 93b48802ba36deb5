"""Pieces of HTML. What comes from outside passes through `text`, or is not on the page."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable


def text(value: object) -> str:
    """Any text as HTML that shows it; letters that cannot be shown, or would turn those after them, are replaced."""
    return html.escape("".join(c if c.isprintable() or c.isspace() else "\ufffd" for c in str(value)))


def number(value: float | None, form: str) -> str:
    """A number, or a dash where there is none."""
    return "–" if value is None else text(format(value, form).removesuffix("."))


def counted(count: int, thing: str) -> str:
    """ "1 image", "2 images"."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def section(title: str, body: str, kind: str = "") -> str:
    """A heading and what is under it; nothing where there is nothing."""
    start = f'<section class="{kind}">' if kind else "<section>"
    return f"{start}\n<h2>{text(title)}</h2>\n{body}\n</section>\n" if body else ""


def items(lines: Iterable[str]) -> str:
    """A list of pieces of HTML."""
    inside = "\n".join(f"<li>{line}</li>" for line in lines)
    return f"<ul>\n{inside}\n</ul>" if inside else ""


def pairs(rows: Iterable[tuple[object, object]]) -> str:
    """Names and what they stand for, of plain text."""
    inside = "\n".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in rows)
    return f"<dl>\n{inside}\n</dl>" if inside else ""


def picture(caption: str, png: bytes, kind: str) -> str:
    """A PNG file inside the page."""
    data = base64.b64encode(png).decode()
    shown = f'<img alt="{text(caption)}" src="data:image/png;base64,{data}">'
    return f'<figure class="{kind}">\n{shown}\n<figcaption>{text(caption)}</figcaption>\n</figure>'
