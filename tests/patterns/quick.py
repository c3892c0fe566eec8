"""Settings of hypothesis: the same examples in every run, however long one takes."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

QUICK = settings(
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=list(HealthCheck),
)
