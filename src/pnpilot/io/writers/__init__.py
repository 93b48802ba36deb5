"""Writers: one file per format."""

from .base import WRITERS, Volume, Writer, check_replaceable, save, writer_named

__all__ = ["WRITERS", "Volume", "Writer", "check_replaceable", "save", "writer_named"]
