"""Questions put to nobody, to see whether they can be asked at all."""

from __future__ import annotations

from collections.abc import Sequence

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.interface import Document, DocumentScore, ModelInfo, Progress, Request


class Rehearsal:
    """Stands in for the engine of a model: takes every request, and answers none."""

    def __init__(self, model: ModelInfo) -> None:
        self._model = model

    def describe(self) -> ModelInfo:
        return self._model

    def set_pattern(self, pattern: Pattern) -> None:
        pass

    def generate(
        self, requests: Sequence[Request], progress: Progress | None = None
    ) -> list[tuple[int, ...]]:
        self._check([request.prompt for request in requests])
        return [() for _ in requests]

    def score(
        self,
        documents: Sequence[Document],
        patterns: Sequence[Pattern],
        progress: Progress | None = None,
    ) -> list[list[DocumentScore]]:
        self._check([document.tokens for document in documents])
        return [
            [DocumentScore(0, 0.0, 0.0, (False,) * len(d.answers)) for d in documents]
            for _ in patterns
        ]

    def _check(self, texts: Sequence[Sequence[int]]) -> None:
        largest = max((token for tokens in texts for token in tokens), default=0)
        if largest >= self._model.vocab_size:
            raise IxsearchError(
                f"token {largest} is outside the model's vocabulary of {self._model.vocab_size}:"
                " the tokenizer is not this model's; copy the model's own into its folder"
            )
