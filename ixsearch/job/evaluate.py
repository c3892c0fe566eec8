"""`ixsearch evaluate`: one pattern, looked at as a finalist is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixsearch.job.clock import now
from ixsearch.job.closer_look import decode, hold_out, put_to_the_test, time_patterns
from ixsearch.job.doubts import doubts
from ixsearch.job.inputs import Sources, load_inputs
from ixsearch.job.judging import judge_finalists
from ixsearch.output.progress import RunProgress
from ixsearch.patterns import Pattern
from ixsearch.results import DocumentSet, Finalist
from ixsearch.runtime.interface import ModelInfo, Workload
from ixsearch.search.finalists import Chosen
from ixsearch.verdict.measure import TOLERANCE
from ixsearch.version import __version__

PHASES = {
    "start": 10.0,
    "calibration": 6.0,
    "held-out": 6.0,
    "verdict": 35.0,
    "decoding": 30.0,
    "speed": 15.0,
}


@dataclass(frozen=True)
class Evaluation:
    """All-F and the pattern, side by side."""

    model: ModelInfo
    tool_version: str
    date: str
    """ISO date and time."""
    seed: int
    document_sets: tuple[DocumentSet, ...]
    finalists: tuple[Finalist, ...]
    """The baseline, then the pattern unless it is the baseline itself."""
    workload: Workload | None
    """None: no speed was measured."""
    warnings: tuple[str, ...]

    @property
    def baseline(self) -> Finalist:
        return self.finalists[0]

    @property
    def served(self) -> Finalist:
        """The pattern that was asked about."""
        return self.finalists[-1]


def evaluate(
    pattern: Pattern,
    sources: Sources,
    progress: RunProgress,
    warnings: Sequence[str] = (),
    tolerance: float = TOLERANCE,
) -> Evaluation:
    """Score a pattern beside all-F on the documents, the questions and speed.

    `warnings` are what is known to be doubtful already.

    Raises:
        IxsearchError: whatever the user can mend.
    """
    progress.phase("start")
    inputs = load_inputs(sources)
    patterns = list(dict.fromkeys([inputs.model.baseline, pattern]))
    score = inputs.engine.score
    rows = score(inputs.calibration, patterns, progress.phase("calibration"))
    chosen = [
        Chosen(p, origin, tuple(row), inputs.calibration_mix)
        for p, origin, row in zip(patterns, ("baseline", "given"), rows, strict=False)
    ]
    finalists, evidence = hold_out(inputs, chosen, progress.phase("held-out"), score)
    tested = patterns[1:]
    evidence = put_to_the_test(inputs, evidence, tested, progress.phase("verdict"), score)
    finalists, said = decode(inputs, finalists, patterns, progress.phase("decoding"))
    finalists, workload = time_patterns(inputs, finalists, patterns, progress.phase("speed"))
    if tested:
        finalists, _ = judge_finalists(
            inputs.model, evidence, finalists, tested, tolerance, sources.seed
        )
    progress.close()
    doubted = doubts(inputs, finalists[0].calibration, finalists[0].held_out)
    return Evaluation(
        model=inputs.model,
        tool_version=__version__,
        date=now(),
        seed=sources.seed,
        document_sets=inputs.sets,
        finalists=tuple(finalists),
        workload=workload,
        warnings=(*warnings, *inputs.warnings, *doubted, *said),
    )
