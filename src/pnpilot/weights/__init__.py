"""Shipped weights: fp16 safetensors beside a JSON card that says how they were made. Never pickle."""

from .store import has_weights, load_weights, read_card, save_weights, shipped_weights, weights_folder

__all__ = ["has_weights", "load_weights", "read_card", "save_weights", "shipped_weights", "weights_folder"]
