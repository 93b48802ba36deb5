"""Writers: one file per format."""

from .base import WRITERS, Volume, Writer, save

__all__ = ["WRITERS", "Volume", "Writer", "save"]
