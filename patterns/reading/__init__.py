"""Files and arguments of every known format, read into one form."""

from __future__ import annotations

from ixsearch.patterns.reading.read import looks_like_path, read_anything, read_letters
from ixsearch.patterns.reading.reading import Reading, Spot

__all__ = ["Reading", "Spot", "looks_like_path", "read_anything", "read_letters"]
