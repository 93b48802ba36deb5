"""What is typed on the command line, and how commands end: one line, and an exit code that says what happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as some

from pnpilot.cli import app, main
from pnpilot.cli._shared import (
    LARGEST_SIDE,
    SMALLEST_SIDE,
    listed,
    parsed_size,
    progress_bar,
    stoppable,
    table_progress,
)
from pnpilot.errors import BadInput, Terminated

quick = settings(max_examples=100, deadline=None, derandomize=True, database=None)

Command = Callable[[Callable[[], None]], int]


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a function as the command `try` through the entry point and returns the exit code."""

    def run(function: Callable[[], None]) -> int:
        monkeypatch.setattr(app, "registered_commands", list(app.registered_commands))
        app.command("try")(function)
        monkeypatch.setattr(sys, "argv", ["pnpilot", "try"])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0)

    return run


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1000):  # Python looks for signals between its steps
        pass


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("stop", "code"), [(terminate, 143), (interrupt, 130)])
def test_any_command_can_be_stopped(
    stop: Callable[[], None], code: int, ended: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert ended(stop) == code
    assert capsys.readouterr() == ("", "pnpilot: stopped\n")
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_handles_ctrl_c_handles_sigterm(ended: Command, capsys: pytest.CaptureFixture[str]) -> None:
    saved = []

    def train() -> None:
        with stoppable("stopped; go on"):
            try:
                terminate()
            except KeyboardInterrupt as stop:
                saved.append(type(stop))
                raise

    assert ended(train) == 143
    assert saved == [Terminated]
    assert capsys.readouterr().err == "pnpilot: stopped; go on\n"


def test_a_process_that_is_told_to_end_says_one_line() -> None:
    code = """
import time
from pnpilot.cli import app, main

@app.command("wait")
def wait() -> None:
    print("ready", flush=True)
    while True:
        time.sleep(1)

main()
"""
    command = [sys.executable, "-c", code, "wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate()
        finally:
            process.kill()
    assert (process.returncode, errors) == (143, "pnpilot: stopped\n")


def test_a_forked_child_ends_without_a_word() -> None:
    code = """
import os, signal, time
from pnpilot.cli import app, main

@app.command("fork")
def fork() -> None:
    ready, say = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(say, b"!")  # a signal that comes while it is being forked off is lost
        while True:
            time.sleep(1)
    os.read(ready, 1)
    os.kill(child, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

main()
"""
    result = subprocess.run([sys.executable, "-c", code, "fork"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{-signal.SIGTERM}\n", "")


class OutOfMemoryError(RuntimeError):
    """Named as torch names its own."""


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OutOfMemoryError("CUDA out of memory.\nTried"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: 2 TB\nmore"),
    ],
)
def test_no_memory_is_one_line(error: Exception, ended: Command, capsys: pytest.CaptureFixture[str]) -> None:
    def allocate() -> None:
        raise error

    assert ended(allocate) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("pnpilot: not enough memory, smaller batches or images need less: ")


def test_torch_says_so_in_words_that_are_known(ended: Command, capsys: pytest.CaptureFixture[str]) -> None:
    def allocate() -> None:
        import torch

        torch.empty(2**58)

    assert ended(allocate) == 2
    assert capsys.readouterr().err.startswith("pnpilot: not enough memory")


def test_a_name_with_a_line_break_makes_no_second_line(ended: Command, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse() -> None:
        raise BadInput("there is no folder a\nb")

    assert ended(refuse) == 2
    assert capsys.readouterr().err == "pnpilot: there is no folder a b\n"


def test_a_fault_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "registered_commands", list(app.registered_commands))

    @app.command("try")
    def fail() -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(sys, "argv", ["pnpilot", "try"])
    with pytest.raises(RuntimeError, match="a fault"):
        main()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench", "policies", "--data", "x", "--batch", "9999999"], "4096"),
        (["bench", "denoisers", "--data", "x", "--batch", "0"], "--batch"),
        (["bench", "policies", "--data", "x", "--size", "²²²"], "got '²²²'"),
    ],
)
def test_bad_numbers_are_one_line(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pnpilot", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("pnpilot: ")
    assert message in line


class Table:
    """Results whose names look like commands to the console."""

    def show(self, console: Any) -> None:
        console.print("runs/[/x] :smile:")


def test_brackets_and_colons_in_names_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    with table_progress(Table(), 1) as tick:
        tick("[/x] [bold")
    assert capsys.readouterr().out == "runs/[/x] :smile:\n"


def test_brackets_beside_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal, where the words are drawn
    with progress_bar(2) as tick:
        tick("[/x]")
    assert "[/x]" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["²²²", "١٢٨", "0", "15", "4097", "1000000000", "9" * 5000, "128x", "x", "", "-128"])
def test_odd_sizes_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="a size is a number from 16 on, at most 4096, or HEIGHTxWIDTH"):
        parsed_size(text)


sides = some.integers(SMALLEST_SIDE, LARGEST_SIDE)


@quick
@given(sides, sides, some.sampled_from("xX"))
def test_sizes_are_read_as_they_are_written(height: int, width: int, sign: str) -> None:
    assert parsed_size(f"{height}{sign}{width}") == (height, width)
    assert parsed_size(str(height)) == (height, height)


@quick
@given(some.text(max_size=12) | some.text(some.sampled_from("0123456789xX²٣ _-+."), max_size=12))
def test_any_text_is_a_size_or_bad_input(text: str) -> None:
    try:
        size = parsed_size(text)
    except BadInput:
        return
    assert all(SMALLEST_SIDE <= side <= LARGEST_SIDE for side in size)
    assert text.isascii()


@quick
@given(some.lists(some.text(max_size=6) | some.text(some.sampled_from("ab, "), max_size=8), max_size=4))
def test_a_list_holds_each_name_once_in_order_however_it_was_given(values: list[str]) -> None:
    names = listed(values)
    assert len(names) == len(set(names))
    assert all(name and name == name.strip() and "," not in name for name in names)
    assert listed(names) == listed([",".join(values)]) == names
    assert set(names) == {part.strip() for value in values for part in value.split(",")} - {""}


def test_nothing_given_is_an_empty_list() -> None:
    assert listed(None) == []


def test_exit_codes_of_commands_pass_through(ended: Command) -> None:
    def leave() -> None:
        raise typer.Exit(7)

    assert ended(leave) == 7
