"""One registry per room. A file in the room's folder is listed, and so is what a user's own module registers."""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from . import plugins
from .errors import PnPilotError, UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    """Names for the classes of one room; its files are imported on the first look-up."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._entries: dict[str, type[T]] = {}
        self._discovered = False

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Enter the decorated class under `name`."""

        def enter(entry: type[T]) -> type[T]:
            if not isinstance(entry, type):
                raise TypeError(f"a {self.kind} is a class, and {name!r} is a {type(entry).__name__}")
            if inspect.isabstract(entry):
                missing = ", ".join(sorted(name for name in dir(entry) if _is_abstract(entry, name)))
                raise TypeError(f"the {self.kind} {name!r} does not define {missing}")
            if not entry.__module__.startswith(self._package):
                self._discover()  # a user's own thing must not take the name of one of ours
            if name in self._entries and not _again(self._entries[name], entry):
                raise ValueError(f"two {self.kind}s are called {name!r}")
            self._entries[name] = entry
            entry.name = name  # type: ignore[attr-defined]
            return entry

        return enter

    def __getitem__(self, name: str) -> type[T]:
        self._discover()
        if name in self._entries:
            return self._entries[name]
        close = difflib.get_close_matches(name, self._entries, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UnknownName(f"unknown {self.kind} {name!r}; {hint}known: {', '.join(self.names())}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def names(self) -> list[str]:
        """All registered names, sorted."""
        self._discover()
        return sorted(self._entries)

    def entries(self) -> list[type[T]]:
        """All registered classes, in the order in which they were registered."""
        self._discover()
        return list(self._entries.values())

    def summary(self, name: str) -> str:
        """The first line of the class's docstring."""
        return summary(self[name])

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True  # what is imported here may look something up
        try:
            room = importlib.import_module(self._package)
            for module in pkgutil.iter_modules(room.__path__):
                if not module.name.startswith("_"):
                    self._import(f"{self._package}.{module.name}")
            plugins.discover()
        except BaseException:
            self._discovered = False
            raise

    def _import(self, name: str) -> None:
        try:
            importlib.import_module(name)
        except Exception as error:
            raise PnPilotError(f"cannot import {name}: {type(error).__name__}: {error}") from error


def _is_abstract(entry: type, name: str) -> bool:
    return getattr(getattr(entry, name, None), "__isabstractmethod__", False)


def _again(old: type, new: type) -> bool:
    """Whether a class is the same one defined again, as when a cell of a notebook is run twice."""
    return (old.__module__, old.__qualname__) == (new.__module__, new.__qualname__)


def summary(entry: type) -> str:
    """The first line of a class's docstring."""
    return next(iter((entry.__doc__ or "").strip().splitlines()), "")
