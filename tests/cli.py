"""The command line, in this process or in one of its own; both through the real entry point."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from pnpilot.cli import main

COMMAND = [sys.executable, "-m", "pnpilot"]
PLAIN = {"COLUMNS": "160", "NO_COLOR": "1"}


class Result(NamedTuple):
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str | Path) -> Result:
    """`pnpilot ARGUMENTS` in this process: no second start of torch."""
    out, err = io.StringIO(), io.StringIO()
    before = signal.getsignal(signal.SIGTERM)
    with (
        mock.patch.object(sys, "argv", ["pnpilot", *map(str, arguments)]),
        mock.patch.dict(os.environ, PLAIN),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
            code: object = 0
        except SystemExit as end:
            code = end.code
        finally:
            signal.signal(signal.SIGTERM, before)
    return Result(code if isinstance(code, int) else int(code is not None), out.getvalue(), err.getvalue())


def run_process(*arguments: str | Path) -> Result:
    """`pnpilot ARGUMENTS` as a user starts it."""
    environment = {**os.environ, **PLAIN}
    command = [*COMMAND, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return Result(done.returncode, done.stdout, done.stderr)


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Until the process has written the file, however long that takes; a process that has ended first fails."""
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


class Said(NamedTuple):
    """The exit code, and what was printed."""

    code: int
    out: str
    err: str


def speaker(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """The entry point in this process, which saves the seconds that the imports take."""
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("NO_COLOR", "1")

    def say(*arguments: str | Path) -> Said:
        monkeypatch.setattr(sys, "argv", ["pnpilot", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        assert not isinstance(end.value.code, str)
        return Said(end.value.code or 0, *capsys.readouterr())

    return say
