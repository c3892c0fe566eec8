"""Why no pattern is recommended, and what might change that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isnan

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


def why_no_finalist(how: Searched) -> str:
    """Where no searched pattern went on to held-out documents."""
    why = "the budgets leave none but all-F"
    if how.stopped is not None:
        why = (
            f"the search ended at its limit --{how.stopped} before it had one. Repeat the command"
            " with a higher limit to go on"
        )
    return f"No searched pattern went on to held-out documents: {why}."


def why_none(searched: Sequence[Finalist], measure: Measure, how: Searched) -> str:
    """`searched` are the finalists that could have been recommended, with their verdicts."""
    tested = [f for f in searched if f.verdict.finding is not Finding.INTERVAL]
    others = [f for f in searched if f not in tested]
    return " ".join(
        [
            "No searched pattern was shown to be within the tolerance on held-out documents.",
            *(f"{_name(f)}: {f.verdict.sentence}" for f in tested),
            *_closest(others),
            *_advice(tested, measure, how),
        ]
    )


def _closest(others: Sequence[Finalist]) -> list[str]:
    """Of those that were not put to the test: the fewest F that look good, else the best."""
    good = [f for f in others if f.verdict.estimate <= f.verdict.tolerance]
    if good:
        found = min(good, key=lambda f: f.pattern.num_full)
        return [f"The fewest F that look within it, {_name(found)}: {found.verdict.sentence}"]
    if not others:
        return []
    found = min(others, key=lambda f: (_estimate(f), f.held_out.divergence))
    return [f"Of the others {_name(found)} came closest: {found.verdict.sentence}"]


def _estimate(finalist: Finalist) -> float:
    """What is not a number is worst."""
    estimate = finalist.verdict.estimate
    return inf if isnan(estimate) else estimate


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
