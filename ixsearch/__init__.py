"""Find, check and export IndexCache F/S patterns for models with DeepSeek Sparse Attention."""

from ixsearch.version import __version__

__all__ = ["__version__"]
