"""Signs that documents, tokenizer and checkpoint do not belong together: all-F fails at them."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from ixsearch.job.inputs import Inputs
from ixsearch.results import Quality
from ixsearch.runtime.interface import Document, ModelInfo

SHORT = 32
"""Tokens: longer answers are seldom right in every token, whatever is wrong."""


def doubts(inputs: Inputs, *all_full: Quality) -> list[str]:
    """What to warn of, if anything. `all_full`: what all-F has on documents of the inputs."""
    documents = (*inputs.calibration, *inputs.held_out)
    signs = [*_nothing_right(documents, all_full), *_worse_than_chance(inputs.model, all_full)]
    if not signs:
        return []
    return [
        f"All-F {', and '.join(signs)}. Then the documents, the tokenizer or the checkpoint are"
        " likely wrong, and no figure here means anything: read what the model is given, and check"
        " that the tokenizer's files are the checkpoint's."
    ]


def _nothing_right(documents: Sequence[Document], all_full: Sequence[Quality]) -> list[str]:
    answers = sum(q.answers for q in all_full)
    if not answers or any(q.matched for q in all_full):
        return []
    lengths = [stop - start for d in documents for start, stop in d.answers]
    if sum(lengths) > SHORT * len(lengths):
        return []
    return [f"has 0 of {answers} answers right"]


def _worse_than_chance(model: ModelInfo, all_full: Sequence[Quality]) -> list[str]:
    worst, chance = max(q.loss for q in all_full), log(model.vocab_size)
    if not worst > chance:
        return []
    return [
        f"has a loss of {worst:.2f} nats a token, where a uniform guess among the"
        f" {model.vocab_size} tokens of the vocabulary has {chance:.2f}"
    ]
