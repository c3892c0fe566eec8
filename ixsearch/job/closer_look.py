"""What finalists go through: held-out documents, decoding, speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ixsearch.job.inputs import Inputs
from ixsearch.job.judging import Evidence
from ixsearch.job.kept_scores import Score
from ixsearch.mix import FIRST_OF_EACH, Mix
from ixsearch.patterns import Pattern
from ixsearch.results import Finalist, Quality
from ixsearch.runtime.interface import DocumentScore, Progress, Workload
from ixsearch.search.finalists import Chosen
from ixsearch.speed import measure_speed
from ixsearch.tasks.visibility import blindness_warning

ALL_FINALISTS = 6
"""Held-out documents that every finalist is scored on; those put to the test meet the rest too."""
FASTEST = 5
"""Searched patterns whose speed is measured."""
SPEED_SECONDS = 20.0
NEW_TOKENS = 32


def hold_out(
    inputs: Inputs, chosen: Sequence[Chosen], progress: Progress, score: Score
) -> tuple[list[Finalist], Evidence]:
    """Score all finalists on the first held-out documents, in one pass."""
    mix = inputs.held_out_mix
    documents = inputs.held_out[: max(ALL_FINALISTS, FIRST_OF_EACH * len(mix.weights))]
    rows = score(documents, [c.pattern for c in chosen], progress)
    finalists = [
        Finalist(c.pattern, c.origin, c.calibration, Quality.of(row, mix), by_set=_by_set(row, mix))
        for c, row in zip(chosen, rows, strict=True)
    ]
    scores = {c.pattern: tuple(row) for c, row in zip(chosen, rows, strict=True)}
    return finalists, Evidence(documents, scores)


def _by_set(row: Sequence[DocumentScore], mix: Mix) -> tuple[Quality, ...]:
    return () if mix.is_one else tuple(map(Quality.of, mix.groups(row)))


def decode(
    inputs: Inputs, finalists: Sequence[Finalist], wanted: Sequence[Pattern], progress: Progress
) -> tuple[list[Finalist], list[str]]:
    """Put the questions to the wanted finalists; also what to warn of."""
    if inputs.questions is None:
        return list(finalists), []
    out, said = [], []
    turns = [f.pattern for f in finalists if f.pattern in wanted]
    for finalist in finalists:
        if finalist.pattern not in turns:
            out.append(finalist)
            continue
        turn = turns.index(finalist.pattern)
        task = inputs.questions.ask(
            inputs.engine,
            inputs.tokenizer,
            finalist.pattern,
            lambda share, turn=turn: progress((turn + share) / len(turns)),
        )
        out.append(replace(finalist, task=task))
        what, topk = f"the task {task.task}", inputs.model.index_topk
        if warning := blindness_warning(what, task.share_past_topk, topk):
            said.append(warning)
    return out, said[:1]


def worth_decoding(finalists: Sequence[Finalist]) -> list[Pattern]:
    """Decoding is slow: all-F, half-F searched and uniform, and the searched one of fewest F."""
    best = [f.pattern for f in finalists if f.origin == "best"]
    half = min(best, key=lambda p: (abs(p.retention - 0.5), p.num_full), default=None)
    wanted = [f.pattern for f in finalists if f.origin == "baseline"]
    if half is not None:
        uniform = (f.pattern for f in finalists if f.origin == "uniform")
        wanted += [half, *(p for p in uniform if p.num_full == half.num_full), best[-1]]
    return wanted


def worth_timing(finalists: Sequence[Finalist]) -> list[Pattern]:
    """The searched finalists of fewest F: those anybody would serve for their speed."""
    return [f.pattern for f in finalists if f.origin == "best"][-FASTEST:]


def time_patterns(
    inputs: Inputs, finalists: Sequence[Finalist], wanted: Sequence[Pattern], progress: Progress
) -> tuple[list[Finalist], Workload | None]:
    """Measure the wanted finalists, interleaved with all-F; None: the engine cannot be timed."""
    if not inputs.can_run:
        return list(finalists), None
    longest = max(len(d.tokens) for d in inputs.held_out)
    # The prefill gives one token more.
    context = max(1, min(longest, inputs.model.max_positions - NEW_TOKENS - 1))
    workload = Workload(context=context, batch=1, new_tokens=NEW_TOKENS)
    speeds = measure_speed(
        inputs.engine,
        [inputs.model.baseline, *wanted],
        workload,
        time_limit_s=SPEED_SECONDS,
        progress=progress,
    )
    return [replace(f, speed=speeds.get(f.pattern)) for f in finalists], workload


def put_to_the_test(
    inputs: Inputs,
    evidence: Evidence,
    tested: Sequence[Pattern],
    progress: Progress,
    score: Score,
) -> Evidence:
    """Score the patterns under test, and all-F, on the other held-out documents too."""
    rest = inputs.held_out[len(evidence.documents) :]
    if not (tested and rest):
        return evidence
    return evidence.extended(score, rest, [inputs.model.baseline, *tested], progress)
