"""Scoring many patterns in one pass: layer by layer, over the trie of their prefixes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.compare import document_score, targets_of
from ixsearch.runtime.crew import Crew, crew_size
from ixsearch.runtime.held import HeldStates
from ixsearch.runtime.interface import Document, DocumentScore, Progress
from ixsearch.runtime.memory import (
    MemoryShortError,
    first_line,
    give_back_unused,
    host_memory,
    is_out_of_memory,
)
from ixsearch.runtime.model import DecoderLayer, DsaModel
from ixsearch.runtime.not_finite import document_error
from ixsearch.runtime.scoring_pass import ScoringPass
from ixsearch.runtime.sizes import layer_bytes, score_bytes, state_bytes
from ixsearch.runtime.trie import PatternTrie

STATE_BYTES = {"cpu": 1 << 28, "cuda": 1 << 33}
"""Documents go through the layers together as long as their live states fit in this."""
HELD_BYTES = {"cpu": 1 << 30, "cuda": 1 << 33}
"""For states that are kept between batches."""
TOKENS_AT_ONCE = {"cpu": 0, "cuda": 1 << 15}
"""Documents of so many tokens go through a layer as one step. On CPU one by one: there a score is
the same to the last bit whatever else is scored."""
Item = TypeVar("Item")
HOST = torch.device("cpu")


class Scorer:
    """Keeps the baseline's final hidden states of every document it has seen, and states of
    prefixes (`HeldStates`) of a model whose weights are on the device.
    """

    def __init__(self, model: DsaModel) -> None:
        self.model = model
        self._baseline = Pattern.from_full(model.config.num_hidden_layers, model.indexer_layers)
        self._baseline_hidden: dict[str, torch.Tensor] = {}
        self.held = HeldStates(
            self._baseline, HELD_BYTES[model.device.type] if model.resident else 0
        )
        self.layer_tokens = 0
        """Tokens through a layer so far, summed over layers."""

    @torch.inference_mode()
    def score(
        self,
        documents: Sequence[Document],
        patterns: Sequence[Pattern],
        progress: Progress | None = None,
    ) -> list[list[DocumentScore]]:
        """`result[pattern][document]`, as `Engine.score` says."""
        found: list[list[DocumentScore]] = [[] for _ in patterns]
        if not documents or not patterns:
            return found
        progress = _never_back(progress)
        done = 0
        try:
            for group in self._groups(documents, len(set(patterns))):
                share = len(group) / len(documents)
                report = _part(progress, done / len(documents), share)
                for row in self._score_fitting(group, patterns, report):
                    for scores, score in zip(found, row, strict=True):
                        scores.append(score)
                done += len(group)
        finally:
            self.model.top.release()
        return found

    def _groups(self, documents: Sequence[Document], patterns: int) -> Iterator[list[Document]]:
        if not self.model.resident:
            yield list(documents)  # each further group would read all weights once more
            return
        token = self._state_bytes
        group: list[Document] = []
        used = 0
        for document in documents:
            size = len(document.tokens) * token * (patterns + 1)
            if group and used + size > STATE_BYTES[self.model.device.type]:
                yield group
                group, used = [], 0
            group.append(document)
            used += size
        if group:
            yield group

    def _score_fitting(
        self, documents: list[Document], patterns: Sequence[Pattern], progress: Progress
    ) -> list[list[DocumentScore]]:
        """`result[document][pattern]`. Where memory runs out, half of the documents at a time, then
        half of the patterns, and kept states make way: to score a part gives the same.
        """
        try:
            return list(self._score_group(documents, patterns, progress))
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            said = first_line(error)
        # The error is gone, and with it all that the pass held.
        gave_way = self.held.give_way()
        self.model.top.release()
        give_back_unused(self.model.device)
        if len(documents) > 1:
            parts = zip(_halves(documents), _two_parts(progress), strict=True)
            return [row for half, at in parts for row in self._score_fitting(half, patterns, at)]
        if len(patterns) > 1:
            parts = zip(_halves(patterns), _two_parts(progress), strict=True)
            rows = [self._score_fitting(documents, half, at)[0] for half, at in parts]
            return [[score for row in rows for score in row]]
        if gave_way:
            return self._score_fitting(documents, patterns, progress)
        raise MemoryShortError(self._too_large(documents[0], patterns[0], said))

    def _too_large(self, document: Document, pattern: Pattern, said: str) -> str:
        leave = " or leave the weights on disk (--offload)"
        more = leave if self.model.resident else " or use a larger device"
        return (
            f"out of memory on {self.model.device}: document {document.name} of"
            f" {len(document.tokens):,} tokens under the one pattern {pattern} does not fit, after"
            f" smaller and smaller batches: give shorter documents{more}"
            f" ({said}; {self.model.memory(pattern)})"
        )

    def _score_group(
        self, documents: list[Document], patterns: Sequence[Pattern], progress: Progress
    ) -> Iterator[list[DocumentScore]]:
        known = all(d.digest in self._baseline_hidden for d in documents)
        run = patterns if known else [self._baseline, *patterns]
        passes = self._passes(documents, run)
        self.model.top.release()
        layers = iter(self.model.layers)
        with Crew(self.model.device) as crew:
            for number in range(self.model.config.num_hidden_layers):
                _through_layer(crew, next(layers), number, passes)
                progress((number + 1) / self.model.config.num_hidden_layers)
        for one in passes:
            self.layer_tokens += one.trie.layers * one.rows
            for i in range(len(one.documents)):
                yield self._finish(one, i, patterns)

    def _passes(
        self, documents: Sequence[Document], patterns: Sequence[Pattern]
    ) -> list[ScoringPass]:
        """Documents from which the same is to be computed go together, on CUDA."""
        tries = [PatternTrie(patterns, self.held.of(document.digest)) for document in documents]
        place = self._place_of_states(documents, max(trie.width for trie in tries))
        together: list[tuple[PatternTrie, list[Document]]] = []
        for document, trie in zip(documents, tries, strict=True):
            if together and self._fits(document, trie, *together[-1]):
                together[-1][1].append(document)
            else:
                together.append((trie, [document]))
        return [ScoringPass(self.model, some, trie, self.held, place) for trie, some in together]

    def _fits(
        self, document: Document, trie: PatternTrie, other: PatternTrie, some: list[Document]
    ) -> bool:
        tokens = sum(len(d.tokens) for d in (*some, document))
        room = TOKENS_AT_ONCE[self.model.device.type]
        return trie.levels == other.levels and tokens <= room

    @property
    def _state_bytes(self) -> int:
        """Of a token: its hidden state and its top-k."""
        c = self.model.config
        return state_bytes(c.hidden_size, c.index_topk, self.model.dtype.itemsize)

    def _place_of_states(self, documents: Sequence[Document], width: int) -> torch.device:
        """The device, unless there is no room for all states: then host memory, from where each
        document's are moved in for their turn at a layer.
        """
        c, room = self.model.config, self.model.state_room
        tokens = sum(len(document.tokens) for document in documents)
        form = self.model.cache_format
        scratch = form.latent_bytes(c) + form.indexer_bytes(c)
        longest = max(len(document.tokens) for document in documents)
        together = max(longest, min(tokens, TOKENS_AT_ONCE[self.model.device.type]))
        piece = score_bytes(together) + together * layer_bytes(c, self.model.dtype.itemsize)
        work = piece * crew_size(self.model.device)
        needed = tokens * (self._state_bytes * (width + 1) + scratch) + work
        place = self.model.device if room is None or needed <= room else HOST
        if not self.model.resident and place.type == "cpu" and needed > host_memory():
            raise IxsearchError(
                f"the states of {width} prefixes of patterns over {tokens:,} tokens, and a"
                f" document in work, take {needed:,} bytes, more than this machine's memory: give"
                " fewer documents, or shorter ones"
            )
        return place

    def _finish(
        self, one: ScoringPass, number: int, patterns: Sequence[Pattern]
    ) -> list[DocumentScore]:
        document = one.documents[number]
        if document.digest not in self._baseline_hidden:
            kept = self._at_leaf(one, number, self._baseline)
            self._baseline_hidden[document.digest] = kept.to(one.place)
        reference = self._baseline_hidden[document.digest]
        return [self._compare(one, number, pattern, reference) for pattern in patterns]

    def _compare(
        self, one: ScoringPass, number: int, pattern: Pattern, reference: torch.Tensor
    ) -> DocumentScore:
        document = one.documents[number]
        hidden = self._at_leaf(one, number, pattern)
        score = document_score(self.model, document, reference, hidden)
        if score is None:
            raise document_error(self.model, document, pattern)
        return score

    def _at_leaf(self, one: ScoringPass, number: int, pattern: Pattern) -> torch.Tensor:
        """Normed hidden states that predict the targets."""
        document = one.documents[number]
        rows = slice(one.first_rows[number], one.first_rows[number + 1])
        x_Td = one.at_end(pattern.letters).x_Td[rows]
        if not x_Td.isfinite().all():  # of all tokens: a request would have failed too
            raise document_error(self.model, document, pattern)
        targets = torch.tensor(targets_of(document), device=self.model.device) - 1
        return self.model.final_norm(x_Td.to(self.model.device))[targets]


def _through_layer(
    crew: Crew, layer: DecoderLayer, number: int, passes: Sequence[ScoringPass]
) -> None:
    """Every state of every pass; each is a piece of work of its own."""
    parents = [one.parents(number) for one in passes]
    work = [(one, p) for one, some in zip(passes, parents, strict=True) for p in some]
    found = iter(crew.map(lambda piece: piece[0].through(layer, number, piece[1]), work))
    for one, some in zip(passes, parents, strict=True):
        one.take([next(found) for _ in some])


def _halves(whole: Sequence[Item]) -> tuple[Sequence[Item], Sequence[Item]]:
    middle = len(whole) // 2
    return whole[:middle], whole[middle:]


def _two_parts(progress: Progress) -> tuple[Progress, Progress]:
    return _part(progress, 0.0, 0.5), _part(progress, 0.5, 0.5)


def _part(progress: Progress, done: float, share: float) -> Progress:
    return lambda fraction: progress(done + share * fraction)


def _never_back(progress: Progress | None) -> Progress:
    """What was scored in vain is scored again: until then nothing is reported."""
    most = 0.0

    def report(fraction: float) -> None:
        nonlocal most
        if progress is not None and fraction >= most:
            most = fraction
            progress(fraction)

    return report
