"""The command that would repeat a run, for its card."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import Field, fields, is_dataclass
from typing import Any


def command_of(words: str, args: Any, always: Sequence[str]) -> str:
    """`pnpilot train …` with the options named in `always`, and all others that differ from their defaults.

    The folder of the data is written as DIR.
    """
    found = {field.name: (field, value) for field, value in options_of(args)}
    given = [str(value) for field, value in found.values() if field.metadata["argument"]]
    changed = [name for name, (field, value) in found.items() if value != field.default]
    names = [*always, *(name for name in changed if name not in always)]
    for name in names:
        field, value = found[name]
        if not field.metadata["argument"]:
            given += [flag(name), "DIR" if name == "data" else shlex.quote(_plain(value))]
    return " ".join([words, *given])


def options_of(args: Any) -> Iterator[tuple[Field[Any], Any]]:
    """The fields of arguments with their values, and those of the arguments inside them."""
    for field in fields(args):
        value = getattr(args, field.name)
        if is_dataclass(value):
            yield from options_of(value)
        else:
            yield field, value


def flag(name: str) -> str:
    """A field's name as it is written on the command line."""
    return "--" + name.replace("_", "-")


def _plain(value: Any) -> str:
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if not isinstance(value, float) or float(short) == value else repr(value)
