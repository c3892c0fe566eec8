"""A verdict in one sentence."""

from __future__ import annotations

from math import ceil, floor, isfinite

from ixsearch.patterns.counting import agreeing, counted
from ixsearch.verdict.comparison import Comparison
from ixsearch.verdict.finding import Finding
from ixsearch.verdict.interval import Interval
from ixsearch.verdict.measure import Measure


def sentence(
    finding: Finding,
    measure: Measure,
    limit: float,
    found: Comparison,
    needed: int | None,
    reference: str = "all-F",
) -> str:
    """What was found, on how much, and how sure that is."""
    write = _by_answers if measure is Measure.ACCURACY else _by_loss
    return write(finding, limit, found, needed, reference)


def answers(found: Comparison, reference: str = "all-F") -> str:
    """`it lost 2 and gained 1 of 160 questions against all-F, which has 158 right`."""
    return (
        f"it lost {found.losses} and gained {found.gains} of"
        f" {counted(found.questions, 'question')} against"
        f" {reference}, which has {found.reference_right} right"
    )


def range_of_loss(found: Comparison) -> str:
    """`between -0.6 and 3.9 points`, a negative number for a gain."""
    return f"between {_down(found.smallest_loss)} and {_up(found.largest_loss)} points"


def _by_answers(
    finding: Finding, limit: float, found: Comparison, needed: int | None, reference: str
) -> str:
    counts, sure = answers(found, reference), _percent(found.confidence)
    tolerance, up, down = _points(limit), _up(found.largest_loss), _down(found.smallest_loss)
    caution = "" if found.design_effect else " (questions taken as independent)"
    match finding:
        case Finding.WITHIN:
            return (
                f"Within the tolerance of {tolerance}, shown: {counts}; its net loss is at most"
                f" {up} points with {sure} confidence{caution}."
            )
        case Finding.EXCESS:
            return (
                f"Worse than the tolerance of {tolerance}, shown: {counts}; its net loss is at"
                f" least {down} points with {sure} confidence{caution}."
            )
        case Finding.NOT_SHOWN:
            return (
                f"Not shown to be within the tolerance of {tolerance}: {counts};"
                f" {_why_not(limit, found, needed)}{caution}."
            )
    return (
        f"Not put to the test: {counts}; its net loss is {range_of_loss(found)}"
        f" ({_percent(2 * found.confidence - 1)} interval){caution}."
    )


def _why_not(limit: float, found: Comparison, needed: int | None) -> str:
    if found.largest_loss <= limit:
        return (
            f"its own bound of {_up(found.largest_loss)} points would do, but a pattern with more"
            " F is tested first and was not shown"
        )
    bound = (
        f"a net loss of up to {_up(found.largest_loss)} points is not excluded with"
        f" {_percent(found.confidence)} confidence"
    )
    if found.net_loss >= limit:
        return f"{bound}, and more questions with the same outcome would not change that"
    if needed is None:
        return f"{bound}, and more questions than anybody asks would be needed to settle it"
    return f"{bound}; about {_about(needed)} questions would settle it if the same share were lost"


def _by_loss(
    finding: Finding, limit: float, found: Comparison, needed: int | None, reference: str
) -> str:
    interval, tolerance = found.relative_loss, f"{100 * limit:g} % of the loss"
    on = f"{counted(found.documents, 'document')} ({counted(found.tokens, 'token')})"
    if interval is None:
        are = agreeing(found.documents, "is", "are")
        return f"Nothing can be shown: {on} {are} too few for an interval of the loss."
    measured = f"its loss is {_change(interval.estimate)} {reference}'s on {on}"
    sure = _percent((1 + interval.confidence) / 2)
    match finding:
        case Finding.WITHIN:
            return (
                f"Within the tolerance of {tolerance}, shown: {measured}, at most"
                f" {_signed(interval.high)} with {sure} confidence."
            )
        case Finding.EXCESS:
            return (
                f"Worse than the tolerance of {tolerance}, shown: {measured}, at least"
                f" {_signed(interval.low)} with {sure} confidence."
            )
        case Finding.NOT_SHOWN:
            return (
                f"Not shown to be within the tolerance of {tolerance}: {measured},"
                f" {_range(interval)}: {_why_not_by_loss(limit, interval)}."
            )
    return f"Not put to the test: {measured}, {_range(interval)}."


def _why_not_by_loss(limit: float, interval: Interval) -> str:
    if interval.high <= limit:
        return "this would do, but a pattern with more F is tested first and was not shown"
    if interval.estimate >= limit:
        return "more documents of this kind would not show it"
    return "more documents are needed"


def _range(interval: Interval) -> str:
    ends = f"{_signed(interval.low)} to {_signed(interval.high)}"
    return f"{ends} ({_percent(interval.confidence)} interval)"


def _change(relative: float) -> str:
    return f"{abs(100 * relative):.2f} % {'above' if relative >= 0 else 'below'}"


def _signed(relative: float) -> str:
    return f"{100 * relative:+.2f} %" if isfinite(relative) else "no limit"


def _about(number: int) -> str:
    """Two digits of a large number, rounded up."""
    unit = 10 ** max(0, len(str(number)) - 2) if number >= 1000 else 1
    return f"{-(-number // unit) * unit:,}"


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _points(share: float) -> str:
    return f"{100 * share:g} points"


def _up(share: float) -> str:
    """Rounded up, so that the words never promise more than the figure."""
    return f"{ceil(1000 * share - 1e-6) / 10:.1f}"


def _down(share: float) -> str:
    return f"{floor(1000 * share + 1e-6) / 10:.1f}"
