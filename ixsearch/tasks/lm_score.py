"""From lm-eval's samples to the figures of one pattern on one task."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from ixsearch.patterns import IxsearchError
from ixsearch.results import TaskScore, binomial_stderr

METRICS = ("exact_match", "acc", "acc_norm", "prompt_level_strict_acc")
"""Those that call each question right or wrong; the first that a task has is taken."""
FILTERS = ("strict-match", "flexible-extract")
"""Of gsm8k and its like. A task without them has one figure, of its first filter, twice."""

Samples = Sequence[dict[str, Any]]


def score_samples(task: str, samples: Samples, share_past_topk: float) -> TaskScore:
    """The share of right answers, and which they are.

    Raises:
        IxsearchError: no metric of the task calls a question right or wrong.
    """
    metric = _metric(task, samples)
    names = list(dict.fromkeys(sample["filter"] for sample in samples))
    strict, flexible = ((name if name in names else names[0]) for name in FILTERS)
    right, found = (_right(task, samples, name, metric) for name in (strict, flexible))
    asked = "".join(s["prompt_hash"] + s["target_hash"] for s in _of(samples, strict))
    return TaskScore(
        task=task,
        questions=len(right),
        strict=sum(right) / len(right),
        strict_stderr=binomial_stderr(sum(right), len(right)),
        flexible=sum(found) / len(found),
        flexible_stderr=binomial_stderr(sum(found), len(found)),
        share_past_topk=share_past_topk,
        correct=right,
        digest=hashlib.sha256(asked.encode()).hexdigest()[:16],
        metric=metric,
    )


def _metric(task: str, samples: Samples) -> str:
    there = samples[0]["metrics"]
    for metric in METRICS:
        if metric in there:
            return metric
    raise IxsearchError(
        f"the task {task} is scored by {', '.join(there)}, and patterns are compared by answers"
        f" that are right or wrong: take a task with one of {', '.join(METRICS)}"
    )


def _of(samples: Samples, name: str) -> Samples:
    return sorted((s for s in samples if s["filter"] == name), key=lambda s: s["doc_id"])


def _right(task: str, samples: Samples, name: str, metric: str) -> tuple[bool, ...]:
    values = [sample[metric] for sample in _of(samples, name)]
    odd = next((value for value in values if value not in (0, 1)), None)
    if odd is not None:
        raise IxsearchError(
            f"the task {task} gives an answer {odd} of {metric}, neither right (1) nor wrong (0):"
            " take a task that decides"
        )
    return tuple(map(bool, values))
