"""Many files: a bad one is told and skipped, the rest go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import PnPilotError, require
from .order import stem
from .outcome import Outcome
from .run import reconstruct_file


def reconstruct_files(files: Sequence[str | Path], out: str | Path, **options: Any) -> Iterator[Outcome]:
    """`reconstruct_file` for one after the other; those that fail have an `error`."""
    for file, name in named_apart([Path(file) for file in files]).items():
        try:
            yield reconstruct_file(file, out, name=name, **options)
        except PnPilotError as error:
            yield Outcome(file, [], error=str(error))


def named_apart(files: Sequence[Path]) -> dict[Path, str]:
    """What the results of each file are called: its stem, or more of its path where several share that."""
    # Both files of a pair of BART's may be named, as a pattern of the shell does.
    headers = {file.with_suffix(".cfl") for file in files if file.suffix == ".hdr"}
    alone = [file for file in files if not (file.suffix == ".cfl" and file in headers)]
    unique = list({file.absolute(): file for file in reversed(alone)}.values())[::-1]
    for make in (stem, _with_suffix, _with_parent):
        names = {file: make(file) for file in unique}
        if len(set(names.values())) == len(names):
            return names
    twice = sorted(name for name in set(names.values()) if list(names.values()).count(name) > 1)
    require(False, f"several files would have the results {twice[0]!r}: reconstruct them into folders of their own")
    raise AssertionError


def _with_suffix(file: Path) -> str:
    return file.name.replace(".", "-")


def _with_parent(file: Path) -> str:
    return f"{file.resolve().parent.name}-{_with_suffix(file)}"
