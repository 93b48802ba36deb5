"""Ctrl-C and SIGTERM while training: at once, but never in the middle of writing a file."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ..errors import Terminated

REASONS: dict[int, type[BaseException]] = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated}


class StopSignals:
    """While it is entered, a signal to stop is raised where the program is, or waits until `held` is over."""

    def __init__(self) -> None:
        self._asked: int | None = None
        self._held = self._heeded = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():  # Python allows it nowhere else
            self._before = {number: signal.signal(number, self._receive) for number in REASONS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _: FrameType | None) -> None:
        self._asked = number
        if not self._held:
            self.check()

    def check(self) -> None:
        """Raise what was asked for. An exception may get lost in a callback, so this is to be called now and then."""
        if self._asked is not None and not self._heeded:
            raise REASONS[self._asked]

    def heed(self) -> None:
        """It is being stopped: further signals change nothing."""
        self._heeded = True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nothing stops what is done in here; a signal counts right after it."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self.check()
