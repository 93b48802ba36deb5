"""A user's own things: files named on the command line, and installed packages with an entry point.

A file or module that is loaded registers its problems, tasks, solvers, denoisers, policies and baselines exactly as a
file in one of the rooms would.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

from .errors import BadInput

GROUP = "pnpilot"
"""Entry points of this group name modules to load, as `module` or `module:anything`."""
VARIABLE = "PNPILOT_WITH"
"""Files and modules to load, separated like paths. An environment variable, so that other processes of a run, such as
the workers of a search, load them too."""

_loaded: set[str] = set()


def use(name: str) -> None:
    """Load a Python file, or a module by its name, here and in all processes that this one starts."""
    path = Path(name)
    if path.suffix == ".py":
        if not path.is_file():
            raise BadInput(f"--with {name}: there is no such file")
        name = str(path.resolve())
    _load(name)
    known = os.environ.get(VARIABLE, "").split(os.pathsep)
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys([*filter(None, known), name]))


def discover() -> None:
    """Load what the environment names and what installed packages offer."""
    for name in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        _load(name)
    for point in entry_points(group=GROUP):
        _load(point.module)  # an attribute after a colon is of no use here


def _load(name: str) -> None:
    if name in _loaded:
        return
    _loaded.add(name)
    try:
        if name.endswith(".py"):
            _load_file(Path(name))
        else:
            importlib.import_module(name)
    except (Exception, SystemExit) as error:
        _loaded.discard(name)
        raise BadInput(f"cannot load {name}: {type(error).__name__}: {error}") from error


def _load_file(path: Path) -> None:
    module_name = f"pnpilot_with_{path.stem}"
    if module_name in sys.modules:
        raise ImportError(f"another file called {path.name} is loaded already")
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and pickles look their module up here
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
