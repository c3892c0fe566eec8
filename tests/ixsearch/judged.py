"""Verdicts for made-up finalists, from their counts of right answers and their losses."""

from dataclasses import replace

from ixsearch.verdict.candidate import Candidate
from ixsearch.verdict.paired import Paired, PairedDocument
from ixsearch.verdict.verdict import judge

DOCUMENTS = 8


def paired(baseline, quality):
    """Spread evenly over documents; the questions that the pattern has right all-F has too."""
    rights = [[i < q.matched for i in range(q.answers)] for q in (baseline, quality)]
    tokens = quality.tokens // DOCUMENTS
    return Paired(
        tuple(
            PairedDocument(
                tokens,
                baseline.loss * tokens,
                quality.loss * tokens,
                0.0,
                quality.divergence * tokens * (0.9 + 0.2 * (i % 2)),
                *(tuple(r[i::DOCUMENTS]) for r in rights),
            )
            for i in range(DOCUMENTS)
        )
    )


def judged(finalists, tolerance=0.03, tested=None):
    """(finalists with verdicts, judgement); `tested`: those put to the test, default all best."""
    base = next(f for f in finalists if f.origin == "baseline")
    others = [f for f in finalists if f.pattern != base.pattern]
    candidates = [
        Candidate(
            f.pattern.letters,
            f.pattern.num_full,
            paired(base.held_out, f.held_out),
            leading=f.origin == "best" if tested is None else f.pattern in tested,
        )
        for f in others
    ]
    judgement = judge(candidates, tolerance)
    verdicts = {v.name: v for v in judgement.verdicts}
    return [replace(f, verdict=verdicts.get(f.pattern.letters)) for f in finalists], judgement
