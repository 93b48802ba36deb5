"""Ctrl-C and SIGTERM stop training at once, but never in the middle of writing a file."""

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
    """Within its context, a signal to stop raises an exception at once, or at the end of a `held` block."""

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
        """Raise the exception of a signal received. It may have been lost in a callback, so call this now and then."""
        if self._asked is not None and not self._heeded:
            raise REASONS[self._asked]

    def heed(self) -> None:
        """Ignore further signals: the run is being stopped."""
        self._heeded = True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Delay signals until the block is done."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self.check()
