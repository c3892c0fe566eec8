"""Torch twins: the meaning of each operation, exact and on any device."""
