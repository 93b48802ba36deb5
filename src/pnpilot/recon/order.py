"""What a run depends on, whether its results are there already, and whether they may be written."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import BadInput, require
from ..io.files import read_json
from ..io.writers import WRITERS, check_replaceable
from ..provenance import header
from .options import Options


def stem(file: Path) -> str:
    """What results are called."""
    name = file.name
    for suffix in (".nii.gz", file.suffix):
        if suffix and name.lower().endswith(suffix.lower()):
            return name[: -len(suffix)] or name
    return name


def order_of(file: Path, formats: Sequence[str], options: Options) -> dict[str, Any]:
    """What a run depends on: the same order for the same files gives the same results."""
    pair = [own for own in (file, file.with_suffix(".cfl"), Path(f"{file}.cfl")) if own.suffix == ".cfl"]
    used = [file, *pair, options.maps, options.noise, options.mask]
    files = {str(own): _state(own) for own in used if own is not None and own.exists()}
    told = {key: sorted(value) if isinstance(value, frozenset) else str(value) for key, value in vars(options).items()}
    return {"files": files, "formats": list(formats), "options": told, "version": header()["versions"]["pnpilot"]}


def _state(file: Path) -> list[int]:
    found = file.stat()
    return [found.st_size, found.st_mtime_ns]


def earlier_report(path: Path) -> Any:
    """A report of ours, or None."""
    with contextlib.suppress(BadInput):
        content = read_json(path) if path.exists() else None
        return content if isinstance(content, dict) and "order" in content else None
    return None


def all_there(out: Path, report: Any) -> bool:
    """Whether everything that a report names is still there."""
    return all((out / name).exists() for name in report["written"])


def check_targets(
    out: Path, name: str, formats: Sequence[str], images: int, file: Path, options: Options, ours: bool
) -> None:
    """Refuse to replace the input, or what somebody else wrote."""
    inputs = {path.resolve() for path in (file, *_given(options))}
    inputs |= {path.with_suffix(suffix) for path in inputs for suffix in (".hdr", ".cfl")}
    for form in formats:
        check_replaceable(form, out, name, images)
        target = out / f"{name}{WRITERS[form].suffix}"
        require(
            target.resolve() not in inputs, f"the result would replace its own input {target}: choose another --out"
        )
        require(ours or not target.exists(), f"{target} is there already, and not from here: choose another --out")


def _given(options: Options) -> list[Path]:
    return [path for path in (options.maps, options.noise, options.mask) if path is not None]
