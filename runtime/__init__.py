"""The DSA model with IndexCache, and the engine that runs it. Knows no search."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ixsearch.runtime.engine import NativeEngine

__all__ = ["NativeEngine"]


def __getattr__(name: str) -> object:
    """Import the engine, and torch with it, on first use: the seam's types alone are light."""
    if name == "NativeEngine":
        from ixsearch.runtime.engine import NativeEngine

        return NativeEngine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
