"""`ixsearch compare`: two patterns on the same held-out documents."""

from __future__ import annotations

from dataclasses import dataclass

from ixsearch.job.clock import now
from ixsearch.job.doubts import doubts
from ixsearch.job.inputs import Sources, load_inputs
from ixsearch.job.judging import Evidence
from ixsearch.output.progress import RunProgress
from ixsearch.patterns import Pattern, PatternError
from ixsearch.results import DocumentSet, Quality
from ixsearch.runtime.interface import ModelInfo
from ixsearch.verdict.candidate import Candidate
from ixsearch.verdict.measure import TOLERANCE
from ixsearch.verdict.verdict import Verdict, judge
from ixsearch.version import __version__

PHASES = {"start": 5.0, "held-out": 60.0}


@dataclass(frozen=True)
class Compared:
    """Two patterns, and the verdict on the second against the first."""

    model: ModelInfo
    tool_version: str
    date: str
    """ISO date and time."""
    seed: int
    document_set: DocumentSet
    a: Pattern
    b: Pattern
    quality_a: Quality
    """Divergence is from all-F, for both."""
    quality_b: Quality
    verdict: Verdict
    warnings: tuple[str, ...]


def compare(
    a: Pattern,
    b: Pattern,
    sources: Sources,
    progress: RunProgress,
    tolerance: float = TOLERANCE,
) -> Compared:
    """Is B within the tolerance of A?

    Raises:
        IxsearchError: whatever the user can mend.
    """
    if a == b:
        raise PatternError(f"both patterns are {a}: there is nothing to compare; give two")
    progress.phase("start")
    inputs = load_inputs(sources)
    model = inputs.model
    patterns = list(dict.fromkeys([model.baseline, a, b]))
    rows = inputs.engine.score(inputs.held_out, patterns, progress.phase("held-out"))
    evidence = Evidence(inputs.held_out, dict(zip(patterns, rows, strict=True)))
    paired = evidence.paired(model, b, a)
    candidate = Candidate(b.letters, b.num_full, paired)
    judgement = judge([candidate], tolerance, seed=sources.seed, reference=str(a))
    progress.close()
    all_full = Quality.of(evidence.scores[model.baseline], inputs.held_out_mix)
    return Compared(
        model=model,
        tool_version=__version__,
        date=now(),
        seed=sources.seed,
        document_set=inputs.held_out_set,
        a=a,
        b=b,
        quality_a=Quality.of(evidence.scores[a], inputs.held_out_mix),
        quality_b=Quality.of(evidence.scores[b], inputs.held_out_mix),
        verdict=judgement.verdicts[0],
        warnings=(*inputs.warnings, *doubts(inputs, all_full)),
    )
