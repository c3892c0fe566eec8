"""Is a pattern's loss of quality within the tolerance? For one candidate, and for several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixsearch.verdict.candidate import Candidate, preferred
from ixsearch.verdict.clustering import design_effect
from ixsearch.verdict.comparison import Comparison, compare
from ixsearch.verdict.finding import Finding
from ixsearch.verdict.measure import LOSS_TOLERANCE, TOLERANCE, Measure, measure_of
from ixsearch.verdict.sample_size import questions_needed
from ixsearch.verdict.words import sentence


@dataclass(frozen=True)
class Verdict:
    """What is known of one candidate."""

    name: str
    num_full: int
    finding: Finding
    measure: Measure
    tolerance: float
    """Share of the questions, or relative increase of the loss."""
    comparison: Comparison
    questions_needed: int | None
    """About how many would settle it, where that is not shown; None: never, or not asked."""
    sentence: str

    @property
    def estimate(self) -> float:
        """What `tolerance` limits, as measured; NaN where that is not known."""
        if self.measure is Measure.ACCURACY:
            return self.comparison.net_loss
        rise = self.comparison.relative_loss
        return float("nan") if rise is None else rise.estimate

    @property
    def may_be_settled(self) -> bool:
        """Is it not shown only because there are too few documents?"""
        if self.finding is not Finding.NOT_SHOWN or _is_within(
            self.comparison, self.measure, self.tolerance
        ):
            return False
        if self.measure is Measure.ACCURACY:
            return self.questions_needed is not None
        return self.comparison.relative_loss is None or self.estimate < self.tolerance


@dataclass(frozen=True)
class Judgement:
    """The verdicts, in the order of the candidates, and which pattern to serve."""

    verdicts: tuple[Verdict, ...]
    chosen: Verdict | None
    """None: no pattern was shown to be within the tolerance."""
    measure: Measure


def judge(
    candidates: Sequence[Candidate],
    tolerance: float = TOLERANCE,
    confidence: float = 0.95,
    loss_tolerance: float = LOSS_TOLERANCE,
    seed: int = 0,
    reference: str = "all-F",
) -> Judgement:
    """Verdicts on the leading candidates, intervals for the others.

    Leading candidates are tested one after the other, most F first, each at the full confidence,
    and testing stops at the first that is not shown to be within the tolerance. The chance to call
    any pattern within that is not is then at most 1 - confidence, however many are tested, because
    the order was fixed beforehand. "Worse" is tested in the opposite order.
    """
    pairs = [c.paired for c in candidates]
    measure, effect = measure_of(pairs, tolerance), design_effect(pairs)
    limit = tolerance if measure is Measure.ACCURACY else loss_tolerance
    found = [compare(paired, confidence, effect, seed) for paired in pairs]
    tested = sorted(
        (i for i, c in enumerate(candidates) if c.leading), key=lambda i: -candidates[i].num_full
    )
    shown = _in_sequence(tested, [_is_within(each, measure, limit) for each in found])
    worse = _in_sequence(tested[::-1], [_is_excess(each, measure, limit) for each in found])
    findings = dict.fromkeys(range(len(found)), Finding.INTERVAL)
    findings |= dict.fromkeys(tested, Finding.NOT_SHOWN)
    findings |= dict.fromkeys(worse, Finding.EXCESS) | dict.fromkeys(shown, Finding.WITHIN)
    verdicts = tuple(
        _verdict(candidate, each, measure, limit, findings[i], reference)
        for i, (candidate, each) in enumerate(zip(candidates, found, strict=True))
    )
    chosen = preferred([candidates[i] for i in shown])
    return Judgement(verdicts, verdicts[candidates.index(chosen)] if chosen else None, measure)


def _in_sequence(order: Sequence[int], passes: Sequence[bool]) -> list[int]:
    """The first of `order` that pass, up to the first that does not."""
    stop = next((at for at, i in enumerate(order) if not passes[i]), len(order))
    return list(order[:stop])


def _is_within(found: Comparison, measure: Measure, limit: float) -> bool:
    if measure is Measure.ACCURACY:
        return found.largest_loss <= limit
    return found.relative_loss is not None and found.relative_loss.high <= limit


def _is_excess(found: Comparison, measure: Measure, limit: float) -> bool:
    if measure is Measure.ACCURACY:
        return found.smallest_loss > limit
    return found.relative_loss is not None and found.relative_loss.low > limit


def _verdict(
    candidate: Candidate,
    found: Comparison,
    measure: Measure,
    limit: float,
    finding: Finding,
    reference: str,
) -> Verdict:
    needed = None
    if finding is Finding.NOT_SHOWN and measure is Measure.ACCURACY:
        needed = questions_needed(
            found.losses,
            found.gains,
            found.questions,
            limit,
            found.confidence,
            found.design_effect or 1.0,
        )
    words = sentence(finding, measure, limit, found, needed, reference)
    return Verdict(
        candidate.name, candidate.num_full, finding, measure, limit, found, needed, words
    )
