"""Which candidates are put to the test. To be asked of calibration documents only."""

from __future__ import annotations

from collections.abc import Sequence

from ixsearch.verdict.candidate import Candidate
from ixsearch.verdict.measure import LOSS_TOLERANCE, TOLERANCE, Measure, measure_of

LEADING = 2


def leading(
    candidates: Sequence[Candidate],
    tolerance: float = TOLERANCE,
    loss_tolerance: float = LOSS_TOLERANCE,
    count: int = LEADING,
) -> tuple[Candidate, ...]:
    """The fewest F that calibration promises to be within the tolerance, and the next safer ones.

    Every test that has to be passed first costs power, and held-out documents cost time: so few
    are tested, most F first. Where calibration promises none, the candidates with the most F are.
    Their `paired` is of calibration documents.
    """
    ladder = sorted(candidates, key=lambda c: c.num_full)
    measure = measure_of([c.paired for c in ladder], tolerance)
    limit = tolerance if measure is Measure.ACCURACY else loss_tolerance
    promising = (i for i, c in enumerate(ladder) if _drop(c, measure) <= limit)
    start = next(promising, max(0, len(ladder) - count))
    return tuple(ladder[start : start + count][::-1])


def _drop(candidate: Candidate, measure: Measure) -> float:
    paired = candidate.paired
    if measure is Measure.ACCURACY:
        return (paired.losses - paired.gains) / paired.questions
    reference = paired.column("reference_loss").sum()
    return float(paired.column("candidate_loss").sum() / max(reference, 1e-9) - 1)
