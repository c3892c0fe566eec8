"""What a pattern is: the value type, its files, its checks, its exports. No torch."""

from ixsearch.patterns.errors import IxsearchError, PatternError
from ixsearch.patterns.pattern import Pattern

__all__ = ["IxsearchError", "Pattern", "PatternError"]
