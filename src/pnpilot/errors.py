"""Errors that a user can fix. The command line prints them as one line and exits with 2."""

from __future__ import annotations


class PnPilotError(Exception):
    """Something the caller can fix; the message says what was wrong and what is accepted."""


class BadInput(PnPilotError, ValueError):
    """A measurement, mask, image or number that cannot be used."""


class CannotWrite(BadInput):
    """A file or folder that cannot be written: no room, no permission, no such place."""


def first_line(error: BaseException) -> str:
    """What an error says, in one line; its kind if it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def require(condition: bool, message: str) -> None:
    """Raise BadInput unless the condition holds."""
    if not condition:
        raise BadInput(message)


class UnknownName(PnPilotError, LookupError):
    """A name that no registry knows."""


class Incompatible(PnPilotError, TypeError):
    """Parts that do not fit together, such as a solver and a problem without the step it needs."""


class BadWeights(PnPilotError):
    """A weight file that is missing, unreadable or not the one its card describes."""


class Terminated(KeyboardInterrupt):
    """The system asked the process to end (SIGTERM): whatever handles Ctrl-C handles this too."""
