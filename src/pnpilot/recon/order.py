"""What a run depends on, whether its results are there already, and whether they may be written."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import BadInput, require
from ..io.files import read_json
from ..io.writers import WRITERS, check_replaceable
from ..model import PnPilot
from ..provenance import header
from ..report.content import plain
from .options import Options


def stem(file: Path) -> str:
    """What results are called."""
    name = file.name
    for suffix in (".nii.gz", file.suffix):
        if suffix and name.lower().endswith(suffix.lower()):
            return name[: -len(suffix)] or name
    return name


def order_of(file: Path, formats: Sequence[str], options: Options, model: PnPilot) -> dict[str, Any]:
    """What a run depends on: the same order for the same files gives the same results."""
    used = [own for named in (file, *_given(options)) for own in (named, *_pair(named))]
    files = {str(own.resolve()): _state(own) for own in used if own.exists()}
    told = {key: sorted(value) if isinstance(value, frozenset) else str(value) for key, value in vars(options).items()}
    version = header()["versions"]["pnpilot"]
    order: dict[str, Any] = {"files": files, "formats": list(formats), "options": told, "version": version}
    order["model"] = _described(model)
    found: dict[str, Any] = plain(order)
    return found


def _described(model: PnPilot) -> dict[str, str]:
    """What images depend on in a model, apart from the device."""
    policy = model.policy if isinstance(model.policy, str) else model.policy.name
    hints = {name: str(value) for name, value in vars(model.hints).items()}
    denoiser = f"{type(model.denoiser).__name__} {model.denoiser.sha256}"
    return {"denoiser": denoiser, "solver": model.solver, "policy": policy, **hints}


def _pair(file: Path) -> list[Path]:
    """Both files of BART's that go by one name."""
    name = file.with_suffix("") if file.suffix in (".cfl", ".hdr") else file
    return [Path(f"{name}.cfl"), Path(f"{name}.hdr")]


def _state(file: Path) -> list[int]:
    found = file.stat()
    return [found.st_size, found.st_mtime_ns]


def earlier_report(path: Path) -> Any:
    """A report of ours, or None."""
    with contextlib.suppress(BadInput):
        content = read_json(path) if path.exists() else None
        return content if isinstance(content, dict) and _names(content.get("written")) and _of(content) else None
    return None


def _names(written: Any) -> bool:
    """Whether these are names of files: anybody can edit a report."""
    return isinstance(written, list) and bool(written) and all(str(own) == Path(str(own)).name for own in written)


def _of(report: Any) -> list[str]:
    """The files that a report is on."""
    order = report.get("order")
    files = order.get("files") if isinstance(order, dict) else None
    return list(files) if isinstance(files, dict) else []


def all_there(out: Path, report: Any) -> bool:
    """Whether everything that a report names is still there."""
    return all((out / str(name)).exists() for name in report["written"])


def check_targets(
    out: Path, name: str, formats: Sequence[str], counts: tuple[int, int], file: Path, options: Options, again: bool
) -> None:
    """Refuse to replace the input, or what somebody else wrote, or results of another file unless `again`.

    `counts` are of images and of their channels.
    """
    report, ours = out / f"{name}.json", again
    if report.exists():  # many images have such a file beside them, with what the scanner said
        known = earlier_report(report)
        require(known is not None, f"{report} is there already, and not from here: choose another --out")
        files, ours = _of(known), True
        same = again or plain(str(file.resolve())) in files
        require(same, f"{report} is on another file, {files[0]}: choose another --out, or replace it by --again")
    inputs = {path.resolve() for path in (file, *_given(options))}
    inputs |= {path.with_suffix(suffix) for path in inputs for suffix in (".hdr", ".cfl")}
    for form in formats:
        images = counts[0] * (1 if WRITERS[form].colours else counts[1])
        check_replaceable(form, out, name, images)
        target = out / f"{name}{WRITERS[form].suffix}"
        require(
            target.resolve() not in inputs, f"the result would replace its own input {target}: choose another --out"
        )
        made = [out / WRITERS[form].folder(name)] if WRITERS[form].folders and images > 1 else []
        for own in (target, *made, out / f"{name}.html"):
            require(ours or not own.exists(), f"{own} is there already, and not from here: choose another --out")


def _given(options: Options) -> list[Path]:
    return list(options.files.values())
