"""From `--objective` to what the search minimises on these documents."""

from __future__ import annotations

from ixsearch.job.inputs import Inputs
from ixsearch.patterns import IxsearchError
from ixsearch.search.objective import Objective
from ixsearch.verdict.paired import visible_answers


def objective_for(name: str, inputs: Inputs) -> Objective:
    """The objective of this name on the calibration documents.

    Raises:
        IxsearchError: there is no such objective; accuracy where a set has no answer that a pattern
            can change.
    """
    if name != "accuracy":
        return Objective(name, inputs.calibration_mix)
    topk = inputs.model.index_topk
    visible = tuple(visible_answers(d, topk) for d in inputs.calibration)
    for which, answers in zip(inputs.sets, inputs.calibration_mix.groups(visible), strict=False):
        if not any(map(any, answers)):
            raise IxsearchError(
                f"--objective accuracy: {which.source} marks no answer past index_topk = {topk}:"
                " write 'prompt' and 'completion', or 'messages', or choose --objective loss"
            )
    return Objective(name, inputs.calibration_mix, visible)
