"""Room: kinds of measurements that files hold. One file, one kind; `base.py` states the contract."""

from .base import MODALITIES, Modality, understood

__all__ = ["MODALITIES", "Modality", "understood"]
