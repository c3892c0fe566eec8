"""The device that launches were chosen and measured for."""

MULTIPROCESSORS = 132
"""Of an H200 (SXM)."""
