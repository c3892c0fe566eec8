"""From the finalists of a search to what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixsearch.job.closer_look import (
    decode,
    hold_out,
    put_to_the_test,
    time_patterns,
    worth_decoding,
    worth_timing,
)
from ixsearch.job.inputs import Inputs
from ixsearch.job.judging import judge_finalists, leaders
from ixsearch.job.kept_scores import Score
from ixsearch.output.progress import RunProgress
from ixsearch.results import Finalist
from ixsearch.runtime.interface import Workload
from ixsearch.search.finalists import Chosen
from ixsearch.verdict.verdict import Judgement


@dataclass(frozen=True)
class Finals:
    """The finalists after all that they go through."""

    finalists: tuple[Finalist, ...]
    judgement: Judgement
    workload: Workload | None
    """None: no speed was measured."""
    warnings: tuple[str, ...]


def play_finals(
    inputs: Inputs,
    chosen: Sequence[Chosen],
    tolerance: float,
    seed: int,
    progress: RunProgress,
    score: Score,
) -> Finals:
    """Held-out documents, the test of the leaders, decoding, speed, and the verdict on all that."""
    tested = leaders(inputs.model, inputs.calibration, chosen, tolerance)
    finalists, evidence = hold_out(inputs, chosen, progress.phase("held-out"), score)
    evidence = put_to_the_test(inputs, evidence, tested, progress.phase("verdict"), score)
    wanted = worth_decoding(finalists)
    finalists, said = decode(inputs, finalists, wanted, progress.phase("decoding"))
    timed = worth_timing(finalists)
    finalists, workload = time_patterns(inputs, finalists, timed, progress.phase("speed"))
    finalists, judgement = judge_finalists(
        inputs.model, evidence, finalists, tested, tolerance, seed
    )
    return Finals(tuple(finalists), judgement, workload, tuple(said))
