"""Why no pattern is recommended, and what might change that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixsearch.results import Finalist
from ixsearch.verdict.finding import Finding
from ixsearch.verdict.measure import Measure


@dataclass(frozen=True)
class Searched:
    """What a search was free to propose, and whether it came to its end."""

    most_full: int | None = None
    """F layers of the fullest pattern, but for all-F, that it may propose; None: of any."""
    allows_all_full: bool = True
    """Else layers are pinned S."""
    stopped: str | None = None
    """The limit at which it ended early."""


def why_none(searched: Sequence[Finalist], measure: Measure, how: Searched) -> str:
    """`searched` are the finalists that could have been recommended, with their verdicts."""
    tested = [f for f in searched if f.verdict.finding is not Finding.INTERVAL]
    return " ".join(
        [
            "No searched pattern was shown to be within the tolerance on held-out documents.",
            *(f"{_name(f)}: {f.verdict.sentence}" for f in tested),
            *_advice(tested, measure, how),
        ]
    )


def _advice(tested: Sequence[Finalist], measure: Measure, how: Searched) -> list[str]:
    """Only what can change the outcome."""
    most = max((f.pattern.num_full for f in tested), default=0)
    ways = []
    if how.most_full is None or most < how.most_full:
        ways.append("search a budget with more F layers")
    if not how.allows_all_full:
        ways.append("pin fewer layers S")
    if any(f.verdict.may_be_settled for f in tested):
        ways.append("give more documents")
    if measure is Measure.ACCURACY:
        ways.append("accept a larger --tolerance")
    fixed = [] if measure is Measure.ACCURACY else [_fixed(tested)]
    return [*fixed, *([f"What might help: {', or '.join(ways)}."] if ways else [])]


def _fixed(tested: Sequence[Finalist]) -> str:
    limit = max((f.verdict.tolerance for f in tested), default=0.0)
    return f"The loss decided; it may rise by {100 * limit:g} %, whatever --tolerance says."


def _name(finalist: Finalist) -> str:
    return f"{finalist.pattern.num_full} F ({finalist.pattern})"
