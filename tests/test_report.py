"""How a comparison is reported, and what the paper printed."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from pnpilot.baselines import BASELINES
from pnpilot.benchmark.report import markdown, marks, psnr_table, show
from pnpilot.benchmark.tables import table_of
from pnpilot.benchmark.tables.csmri import PUBLISHED_METHODS, CSMRITable
from pnpilot.tasks.csmri import CSMRI
from pnpilot.tasks.phase import PhaseRetrieval

TABLES = {"csmri": table_of(CSMRI()), "phase": table_of(PhaseRetrieval())}


def printed(task: str, dataset: str, setting: str, method: str) -> float | None:
    return TABLES[task].paper(dataset, setting, method)


def csmri_report(rows: list[dict[str, Any]], command: str = "pnpilot") -> str:
    return markdown(TABLES["csmri"].title, rows, command, TABLES["csmri"].notes)


def phase_report(rows: list[dict[str, Any]], command: str = "pnpilot") -> str:
    return markdown(TABLES["phase"].title, rows, command, TABLES["phase"].notes)


def row(method: str, psnr: float, *, dataset: str = "brain50", setting: str = "x4 sigma=10") -> dict[str, Any]:
    scores = {"psnr": psnr, "ssim": psnr / 100, "iterations": 9, "seconds": 0.5, "count": 2, "device": "CPU"}
    labels = {"dataset": dataset, "setting": setting, "method": method}
    task = "phase" if dataset == "phase12" else "csmri"
    spread = {"seeds": None, "draws": None}
    return {**labels, **scores, "spread": spread, "paper": printed(task, dataset, setting, method)}


def phase_row(method: str, psnr: float, seeds: float | None = None, draws: float | None = None) -> dict[str, Any]:
    own = row(method, psnr, dataset="phase12", setting="alpha=27")
    return {**own, "spread": {"seeds": seeds, "draws": draws}}


def test_the_best_two_are_marked_and_equal_ones_share_a_place() -> None:
    assert marks([30.0, 31.0, 29.0], "{:.2f}") == ["second", "best", ""]
    assert marks([30.001, 30.004, 29.0, 29.0, 28.0], "{:.2f}") == ["best", "best", "second", "second", ""]
    assert marks([None, 30.0], "{:.2f}") == ["", "best"]
    assert marks([None], "{:.2f}") == [""]


def test_the_papers_columns_stand_beside_ours() -> None:
    rows = [row("tv", 30.5), row("recpf", 30.0), row("ista-net+", 32.0), row("learned", 32.004)]
    header, _, line = psnr_table(rows).splitlines()
    assert header == "|  | tv | recpf | ista-net+ | learned | recpf † | ista-net+ † | learned † |"
    assert line == "| x4 sigma=10 | *30.50* | 30.00 | **32.00** | **32.00** | 30.21 | **33.13** | *33.07* |"


def test_settings_and_sets_that_the_paper_does_not_have_stand_alone() -> None:
    header, _, line = psnr_table([row("recpf", 30.0, setting="x3 sigma=7")]).splitlines()
    assert (header, line) == ("|  | recpf |", "| x3 sigma=7 | **30.00** |")
    mixed = psnr_table([row("recpf", 30.0, setting="x3 sigma=7"), row("recpf", 29.0)]).splitlines()
    assert mixed[2:] == ["| x3 sigma=7 | **30.00** |  |", "| x4 sigma=10 | **29.00** | **30.21** |"]
    for alone in (row("recpf", 30.0, dataset="mine"), row("tv", 30.0), {**row("recpf", 30.0), "paper": None}):
        assert "†" not in csmri_report([alone])


def test_the_report_has_every_score_and_the_right_caution() -> None:
    rows = [row(name, 30.0, dataset=dataset) for dataset in ("brain50", "medical4") for name in ("recpf", "learned")]
    text = csmri_report(rows, "pnpilot bench compare --seed 1")
    assert text.startswith("# CS-MRI\n\n`pnpilot bench compare --seed 1`\n")
    brain, medical = text.split("## brain50\n")[1].split("## medical4\n")
    for part in (brain, medical):
        assert [line for line in part.splitlines() if line.startswith("### ")] == [
            "### PSNR in dB",
            "### SSIM",
            "### Iterations",
            "### Seconds per image, CPU",
        ]
        assert "Means over 2 reconstructions." in part
        assert "| x4 sigma=10 | **0.3000** | **0.3000** |" in part
        assert "| x4 sigma=10 | 9.0 | 9.0 |" in part
    assert "MICCAI" in brain
    assert "not proven" in brain
    assert "Medical7" in medical
    assert "Four of its seven images are here, so the means cannot be compared." in medical
    assert "cannot be compared" not in brain


def test_the_report_says_what_ran_where() -> None:
    rows = [row("recpf", 30.0), {**row("learned", 31.0), "device": "a GPU"}]
    assert "### Seconds per image, recpf: CPU; learned: a GPU\n" in csmri_report(rows)


def test_phase_retrieval_has_its_own_title_and_caution() -> None:
    text = phase_report([phase_row("hio-free", 25.0), phase_row("learned", 33.0)], "pnpilot bench compare")
    assert text.startswith("# Phase retrieval\n\n`pnpilot bench compare`\n")
    assert "|  | hio-free | learned | hio-free † | learned † |" in text
    assert "| alpha=27 | *25.00* | **33.00** | *25.76* | **33.90** |" in text
    (caution,) = [line for line in text.splitlines() if line.startswith("†")]
    assert "the same twelve images" in caution
    assert "one row for HIO" in caution
    assert "MICCAI" not in text


@pytest.mark.parametrize(
    ("seeds", "draws", "titles"),
    [
        (None, None, []),
        (0.123, None, ["seeds of noise"]),
        (None, 0.456, ["draws of operators"]),
        (0.123, 0.456, ["seeds of noise", "draws of operators"]),
    ],
)
def test_spreads_are_told_where_there_are_several(seeds: float | None, draws: float | None, titles: list[str]) -> None:
    text = phase_report([phase_row("hio", 25.0, seeds, draws), phase_row("wf", 24.0)])
    sections = [line for line in text.splitlines() if line.startswith("### ")]
    assert [line for line in sections if "smallest" in line] == [
        f"### Largest less smallest mean PSNR of the {title}" for title in titles
    ]
    for title, value in (("seeds of noise", "0.12"), ("draws of operators", "0.46")):
        if title in titles:
            table = text.split(f"{title}\n\n")[1].split("\n\n")[0]
            assert table == f"|  | hio | wf |\n| --- | --- | --- |\n| alpha=27 | {value} |  |"


def test_lines_on_the_screen_have_the_papers_number() -> None:
    console = Console(width=140)
    with console.capture() as capture:
        show([row("recpf", 30.0), row("tv", 31.0), row("learned", 31.5, setting="x8 sigma=15")], console)
    lines = [line.split() for line in capture.get().splitlines() if "sigma" in line]
    assert lines[0] == ["brain50", "x4", "sigma=10", "recpf", "30.00", "0.3000", "9.0", "0.500", "30.21"]
    assert lines[1][-1] == "0.500"  # no number for tv
    assert lines[2][-1] == "29.65"


@pytest.mark.parametrize(
    ("dataset", "setting", "method", "value"),
    [
        ("brain50", "x4 sigma=10", "ista-net+", 33.13),
        ("brain50", "x2 sigma=5", "learned", 38.57),
        ("brain50", "x8 sigma=5", "bm3d-mri", 31.34),
        ("brain50", "x2 sigma=15", "fcsa", 26.68),
        ("medical4", "x8 sigma=15", "learned", 26.41),
        ("medical4", "x4 sigma=5", "admm-net", 30.24),
        ("medical4", "x2 sigma=10", "recpf", 29.48),
        ("medical4", "x4 sigma=15", "ircnn", 27.94),
        ("brain50", "x4 sigma=10", "tv", None),
        ("brain50", "x3 sigma=10", "recpf", None),
        ("set12", "x4 sigma=10", "recpf", None),
    ],
)
def test_published_numbers(dataset: str, setting: str, method: str, value: float | None) -> None:
    assert printed("csmri", dataset, setting, method) == value


@pytest.mark.parametrize(
    ("setting", "method", "value"),
    [
        ("alpha=9", "hio", 35.96),
        ("alpha=9", "hio-free", 35.96),
        ("alpha=9", "bm3d-prgamp", 40.25),
        ("alpha=27", "wf", 24.96),
        ("alpha=27", "dolphin", 27.45),
        ("alpha=27", "learned", 33.9),
        ("alpha=81", "spar", 22.44),
        ("alpha=81", "prdeep", 26.82),
        ("alpha=81", "schedule", None),
        ("6 masks alpha=27", "hio", None),
    ],
)
def test_published_numbers_of_phase_retrieval(setting: str, method: str, value: float | None) -> None:
    assert printed("phase", "phase12", setting, method) == value
    assert printed("csmri", "phase12", setting, method) is None
    assert printed("phase", "set12", setting, method) is None


def test_the_paper_has_every_method_for_phase_retrieval_and_falls_with_noise() -> None:
    others = {name for name in BASELINES if "phase" in BASELINES[name].serves}
    methods = TABLES["phase"].published["phase12"]["alpha=9"]
    assert set(methods) == others | {"learned"}
    for method in methods:
        numbers = [printed("phase", "phase12", setting.label, method) or 0.0 for setting in PhaseRetrieval().settings]
        assert numbers == sorted(numbers, reverse=True)
        assert numbers[-1] > 10


def test_the_paper_has_every_setting_and_falls_with_noise_and_acceleration() -> None:
    for dataset in CSMRITable.datasets:
        for method in PUBLISHED_METHODS:
            table = {
                (setting["acceleration"], setting["sigma"]): printed("csmri", dataset, setting.label, method) or 0.0
                for setting in CSMRI().settings
            }
            for factor in (2, 4, 8):
                assert table[factor, 5] > table[factor, 10] > table[factor, 15] > 20
            assert table[2, 5] > table[4, 5] > table[8, 5]
