"""Pages of results: their tables agree with the kept JSON."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pnpilot.errors import BadInput
from tests.test_report import row

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted((DOCS / "results").glob("*.md"))
DATA = sorted((DOCS / "results" / "data").glob("*.json"))


def load() -> Any:
    spec = importlib.util.spec_from_file_location("pages", DOCS / "pages.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages = load()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_tables_are_what_the_results_say(path: Path) -> None:
    text = path.read_text()
    assert text == pages.regenerated(text, DOCS / "results" / "data"), "run `python docs/pages.py`"
    assert text.count("<!-- table:") == text.count("<!-- end -->") == len(pages.MARKED.findall(text))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_other_tables_say_that_they_were_typed(path: Path) -> None:
    assert pages.typed_tables(path.read_text()) == []


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_tables_of_scores_elsewhere_say_so_too(path: Path) -> None:
    scores = re.compile(r"^\|.*\b\d\d\.\d\d \(\d+\)", re.MULTILINE)  # PSNR and iterations
    sections = re.split(r"^(?=#+ )", path.read_text(), flags=re.MULTILINE)
    assert [part.splitlines()[0] for part in sections if scores.search(part) and "typed" not in part.lower()] == []


def test_the_readme_shows_rows_of_these_pages() -> None:
    """Some methods and settings of a row of ours, unchanged."""

    def rows(text: str) -> list[list[str]]:
        lines = [line for line in text.splitlines() if line.startswith("|")]
        return [found for line in lines if len(found := re.findall(r"\d+\.\d\d\b", line)) > 2]

    known = [iter_row for page in PAGES for iter_row in rows(page.read_text())]
    shown = rows((DOCS.parent / "README.md").read_text())
    assert len(shown) > 6
    for row_shown in shown:
        assert any(set(row_shown) <= set(whole) for whole in known), row_shown


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.name)
def test_kept_results_are_small_used_and_name_no_folder(path: Path) -> None:
    content = json.loads(path.read_text())
    assert path.stat().st_size < 100_000
    assert "images" not in content
    assert content["command"].startswith(("pnpilot ", "python examples/"))
    assert " /" not in content["command"]
    assert any(f"<!-- table: {path.name} " in page.read_text() for page in PAGES)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [{**row(name, score), "gflop": 2.5} for name, score in (("tv", 30.0), ("learned", 31.0))]
    rows += [{**row("tv", 29.0, dataset="medical4"), "gflop": 2.5}]
    content = {"command": "pnpilot bench", "versions": {"pnpilot": "1"}, "rows": rows}
    (tmp_path / "some.json").write_text(json.dumps(content))
    return tmp_path


def page(order: str, between: str = "") -> str:
    return f"# Title\n\nText.\n\n<!-- table: {order} -->\n{between}<!-- end -->\n\nMore.\n"


def test_what_stands_between_the_markers_is_replaced(data: Path) -> None:
    expected = page(
        "some.json psnr dataset=brain50",
        "|  | tv | learned |\n| --- | --- | --- |\n| x4 sigma=10 | *30.00* | **31.00** |\n\n"
        "`pnpilot bench`: means over 2 reconstructions, CPU; pnpilot 1.\n",
    )
    for between in ("", "old\n", "| 12 |\n"):
        assert pages.regenerated(page("some.json psnr dataset=brain50", between), data) == expected
    assert pages.regenerated(expected, data) == expected


def test_columns_are_lines_once_each(data: Path) -> None:
    text = pages.regenerated(page("some.json columns=method,gflop"), data)
    assert "| method | gflop |\n| --- | --- |\n| tv | 2.50 |\n| learned | 2.50 |\n\n`" in text


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ("none.json psnr", "none.json, which cannot be read"),
        ("some.json psnr dataset=other", "finds no row"),
        ("some.json beauty", "finds no beauty"),
        ("some.json columns=method,beauty", "finds no beauty"),
    ],
)
def test_a_table_that_cannot_be_made_is_refused(order: str, message: str, data: Path) -> None:
    with pytest.raises(BadInput, match=message):
        pages.regenerated(page(order), data)


def test_a_run_is_kept_without_images_and_folders() -> None:
    command = "pnpilot bench policies --data '/a/my data' --json=/b/c.json --method 'fixed*' --out /b --images 3"
    content = {"command": command, "rows": [1], "images": [2], "seed": 0}
    assert pages.kept(content) == {
        "command": "pnpilot bench policies --data DATA --method 'fixed*' --images 3",
        "rows": [1],
        "seed": 0,
    }


def test_typed_tables_must_say_so() -> None:
    table = "| a |\n| --- |\n| 1 |\n"
    assert pages.typed_tables(f"# A\n\nTyped from the paper.\n\n{table}") == []
    assert pages.typed_tables(f"# A\n\nTyped.\n\n## B\n\n{table}") == ["## B"]
    assert pages.typed_tables(f"# A\n\n<!-- table: x.json psnr -->\n{table}<!-- end -->\n") == []
