"""What made a result: the command, and versions."""

from __future__ import annotations

import platform
import shlex
import sys
from importlib.metadata import version
from typing import Any

import torch

from . import __version__


def header() -> dict[str, Any]:
    """What made the numbers: the command, and versions."""
    versions = {"pnpilot": __version__, "torch": torch.__version__, "deepinv": version("deepinv")}
    return {
        "command": shlex.join(["pnpilot", *sys.argv[1:]]),
        "versions": {**versions, "python": platform.python_version()},
    }
