"""Tables of the pages in docs/results, made from the JSON that the commands wrote.

    python docs/pages.py                   rewrite the tables of all pages
    python docs/pages.py RUN.json NAME     keep the rows of a run as docs/results/data/NAME.json first

What stands between two markers is replaced by a table:

    <!-- table: NAME.json psnr dataset=set12 -->
    <!-- end -->

After the file come the keys to show, each a block of columns with a method per column (default: psnr), or
`columns=method,gflop,…` for one line per row; then rows to choose, as KEY=VALUE. Every table is followed by the command
that made it. A table outside markers was typed by hand; the text above it must say so with the word "typed".
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pnpilot.benchmark.report import Row, grid, number, table
from pnpilot.errors import BadInput
from pnpilot.io.files import write_atomically, write_json

RESULTS = Path(__file__).parent / "results"
MARKED = re.compile(r"(<!-- table: (.*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
FOLDERS = {"--data": "DATA"}
"""Options whose value is a local folder, with what to write instead."""
OUTPUTS = ("--json", "--out", "--device")
"""Options that do not change the numbers."""


def kept(content: Mapping[str, Any]) -> dict[str, Any]:
    """What the repository keeps of a run's JSON: everything but per-image values and local folders."""
    own = {key: value for key, value in content.items() if key not in ("images", "traces")}
    return {**own, "command": portable(content["command"])}


def portable(command: str) -> str:
    """A command without local folders."""
    words, told = shlex.split(command), list[str]()
    while words:
        name, equals, value = words.pop(0).partition("=")
        if name not in FOLDERS and name not in OUTPUTS:
            told.append(shlex.quote(name + equals + value))
            continue
        value = value if equals else words.pop(0)
        told += [name, FOLDERS[name]] if name in FOLDERS else []
    return " ".join(told)


def regenerated(page: str, data: Path) -> str:
    """The page with its tables made anew from the files in `data`."""
    return MARKED.sub(lambda found: f"{found[1]}{made(found[2], data)}\n{found[4]}", page)


def made(order: str, data: Path) -> str:
    """One table and the command behind it."""
    file, *words = shlex.split(order)
    try:
        content = json.loads((data / file).read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"the table {order!r} needs {data / file}, which cannot be read: {error}") from error
    options = dict(word.split("=", 1) for word in words if "=" in word)
    keys = [word for word in words if "=" not in word]
    columns = options.pop("columns", "")
    rows = [row for row in content["rows"] if all(str(row.get(key)) == value for key, value in options.items())]
    if not rows:
        raise BadInput(f"the table {order!r} finds no row in {file}")
    wanted = [*keys, *filter(None, columns.split(","))]
    if unknown := [key for key in wanted if not any(key in row for row in rows)]:
        raise BadInput(f"the table {order!r} finds no {', '.join(unknown)} in {file}")
    shown = lines(rows, columns.split(",")) if columns else grid(rows, *(keys or ["psnr"]))
    return f"{shown}\n\n{origin(content, rows)}"


def lines(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """One line per row; rows that look the same share one."""
    found = ([cell(row.get(key), key) for key in columns] for row in rows)
    return table([key.replace("_", " ") for key in columns], dict.fromkeys(map(tuple, found)))


def cell(value: Any, key: str) -> str:
    """Text and integers as they are, other numbers as in all tables."""
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else number(value, key)


def origin(content: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """The command, the number of reconstructions, the devices and the versions."""
    counts = " or ".join(str(count) for count in sorted({row["count"] for row in rows}))
    devices = " and ".join(sorted({row["device"] for row in rows}))
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    return f"`{content['command']}`: means over {counts} reconstructions, {devices}; {versions}."


def typed_tables(page: str) -> list[str]:
    """Sections that have a table outside markers and do not say that it was typed."""
    rest = MARKED.sub("", page)
    sections = re.split(r"^(?=#+ )", rest, flags=re.MULTILINE)
    return [
        section.splitlines()[0]
        for section in sections
        if (first := re.search(r"^\|", section, re.MULTILINE)) and "typed" not in section[: first.start()].lower()
    ]


def main(words: Sequence[str]) -> None:
    """Keep a run if one is named, and rewrite all pages."""
    if words:
        run, name = words
        write_json(RESULTS / "data" / f"{name}.json", kept(json.loads(Path(run).read_text())))
    for path in sorted(RESULTS.glob("*.md")):
        write_atomically(path, regenerated(path.read_text(), RESULTS / "data").encode())


if __name__ == "__main__":
    main(sys.argv[1:])
