"""Readers: one file per format."""

from .base import READERS, Reader, open_raw

__all__ = ["READERS", "Reader", "open_raw"]
