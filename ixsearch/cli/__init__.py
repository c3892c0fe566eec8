"""The command line."""

from ixsearch.cli.app import main

__all__ = ["main"]
