"""From scores to verdicts on the searched finalists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ixsearch.job.kept_scores import Score
from ixsearch.patterns import Pattern
from ixsearch.results import Finalist, Ratio
from ixsearch.runtime.interface import Document, DocumentScore, ModelInfo, Progress
from ixsearch.search.finalists import Chosen
from ixsearch.verdict.candidate import Candidate
from ixsearch.verdict.interval import Interval
from ixsearch.verdict.leading import leading
from ixsearch.verdict.paired import Paired, pair, visible_answers
from ixsearch.verdict.verdict import Judgement, judge

Scores = Mapping[Pattern, Sequence[DocumentScore]]


@dataclass(frozen=True)
class Evidence:
    """Documents, and what each pattern scored on them; some patterns saw only the first few."""

    documents: Sequence[Document]
    scores: Scores

    def paired(
        self, model: ModelInfo, pattern: Pattern, reference: Pattern | None = None
    ) -> Paired:
        """The pattern against the reference, all-F by default, on what both have seen."""
        mine = self.scores[pattern]
        seen = [visible_answers(d, model.index_topk) for d in self.documents[: len(mine)]]
        return pair(self.scores[reference or model.baseline][: len(mine)], mine, seen)

    def extended(
        self,
        score: Score,
        more: Sequence[Document],
        patterns: Sequence[Pattern],
        report: Progress,
    ) -> Evidence:
        """Score these patterns on more documents."""
        rows = score(more, patterns, report)
        added = dict(zip(patterns, rows, strict=True))
        scores = {p: (*s, *added.get(p, ())) for p, s in self.scores.items()}
        return Evidence([*self.documents, *more], scores)


def leaders(
    model: ModelInfo, documents: Sequence[Document], chosen: Sequence[Chosen], tolerance: float
) -> list[Pattern]:
    """The patterns to be put to the test, chosen without a look at held-out documents.

    `documents` are those of the calibration scores.
    """
    evidence = Evidence(documents, {c.pattern: c.scores for c in chosen})
    candidates = [
        Candidate(c.pattern.letters, c.pattern.num_full, evidence.paired(model, c.pattern))
        for c in chosen
        if is_searched(c, model)
    ]
    return [Pattern(c.name) for c in leading(candidates, tolerance)] if candidates else []


def is_searched(one: Chosen | Finalist, model: ModelInfo) -> bool:
    """Is it a pattern that could be recommended?"""
    return one.origin not in ("baseline", "uniform") and one.pattern != model.baseline


def judge_finalists(
    model: ModelInfo,
    evidence: Evidence,
    finalists: Sequence[Finalist],
    tested: Sequence[Pattern],
    tolerance: float,
    seed: int,
) -> tuple[list[Finalist], Judgement]:
    """Verdicts on the tested finalists, intervals for the other ones."""
    candidates = [
        Candidate(
            f.pattern.letters,
            f.pattern.num_full,
            evidence.paired(model, f.pattern),
            leading=f.pattern in tested,
            speed=_speeds(f),
        )
        for f in finalists
        if f.pattern != model.baseline
    ]
    judgement = judge(candidates, tolerance, seed=seed)
    verdicts = {Pattern(v.name): v for v in judgement.verdicts}
    return [replace(f, verdict=verdicts.get(f.pattern)) for f in finalists], judgement


def _speeds(finalist: Finalist) -> tuple[Interval, ...]:
    if finalist.speed is None:
        return ()
    return tuple(map(_interval, (finalist.speed.prefill_ratio, finalist.speed.decode_ratio)))


def _interval(ratio: Ratio) -> Interval:
    """Quartiles of the rounds."""
    return Interval(ratio.median, ratio.low, ratio.high, 0.5)
