"""The table of images, and which of them are drawn as curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .content import ImageReport
from .markup import counted, number, text

ROWS = 200
"""A volume may have thousands of images, and a page must open on a phone."""
CURVES = 4
"""Lines that can still be told apart."""
Column = tuple[str, Callable[[ImageReport], str]]
NUMBERS: list[Column] = [
    ("noise", lambda image: number(image["noise"], "#.3g")),
    ("peak", lambda image: number(image["peak"], "#.3g")),
    ("measured", lambda image: number(image["kept"], ".0%")),
    ("iterations", lambda image: number(image["iterations"], "d")),
    ("distance", lambda image: number(image["distance"], ".2f")),
]
WORDS: list[Column] = [
    ("stopped", lambda image: "nothing to reconstruct" if image["empty"] else text(image["stopped"])),
    ("calibration", lambda image: text(image["calibration"])),
    ("solver", lambda image: text(image["solver"])),
    ("policy", lambda image: text(image["policy"])),
]
MEANING = (
    "Noise in units of the image’s peak, the peak in the units of the file; measured: the share of k-space; "
    "distance: from the data, in units of their noise."
)


def table(images: Sequence[ImageReport]) -> str:
    """One row per image; words that are the same for all stand above it."""
    shown = images[:ROWS]
    if not shown:
        return ""
    varied = [(title, cell) for title, cell in WORDS if len({cell(image) for image in images}) > 1]
    same = [(title, cell(images[0])) for title, cell in WORDS if (title, cell) not in varied]
    common = ", ".join(f"{title} {said}" for title, said in same if said)
    whose = "For all images" if len(images) > 1 else "For this image"
    parts = [f'<p class="note">{whose}: {common}.</p>'] if common else []
    columns = [*NUMBERS, *varied]
    head = "".join(f'<th scope="col"{_kind(place)}>{title}</th>' for place, (title, _) in enumerate(columns))
    rows = "\n".join(_row(image, columns) for image in shown)
    heading = f'<thead><tr><th scope="col">image</th>{head}</tr></thead>'
    parts.append(f'<div class="wide"><table>\n{heading}\n<tbody>\n{rows}\n</tbody>\n</table></div>')
    left_out = len(images) - len(shown)
    more = f"{counted(left_out, 'more image')} left out here; all are in the JSON file. " if left_out else ""
    parts.append(f'<p class="note">{more}{MEANING}</p>')
    return "\n".join(parts)


def _row(image: ImageReport, columns: Sequence[Column]) -> str:
    cells = "".join(f"<td{_kind(place)}>{cell(image)}</td>" for place, (_, cell) in enumerate(columns))
    kind = ' class="empty"' if image["empty"] else ""
    return f'<tr{kind}><th scope="row">{text(image["name"])}{" ⚠" if image["warnings"] else ""}</th>{cells}</tr>'


def _kind(place: int) -> str:
    return ' class="number"' if place < len(NUMBERS) else ""


def with_curves(images: Sequence[ImageReport]) -> dict[str, ImageReport]:
    """A few images from the first to the last, by name, whose parameters can be drawn on the same axes."""
    ran = [image for image in images if image["iterations"] and any(image["parameters"].values())]
    ran = [image for image in ran if image["solver"] == ran[0]["solver"]]
    count = min(len(ran), CURVES)
    places = [index * (len(ran) - 1) // max(count - 1, 1) for index in range(count)]
    return {ran[place]["name"]: ran[place] for place in places}
