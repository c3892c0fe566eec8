"""Published models and patterns, as data."""

from __future__ import annotations

from ixsearch.patterns.presets.models import PRESETS, preset
from ixsearch.patterns.presets.published import Published, published_patterns

__all__ = ["PRESETS", "Published", "preset", "published_patterns"]
