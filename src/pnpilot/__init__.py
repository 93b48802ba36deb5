"""PnPilot: plug-and-play image reconstruction with nothing to tune."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .model import PnPilot, Reconstruction

__version__ = "0.1.0"
__all__ = ["PnPilot", "Reconstruction", "__version__"]


def __getattr__(name: str) -> Any:
    # torch and deepinv take seconds to import: only code that asks for the model waits for them.
    if name in ("PnPilot", "Reconstruction"):
        from . import model

        return getattr(model, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
