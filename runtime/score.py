"""Scoring many patterns in one pass: layer by layer, over the trie of their prefixes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.cache import LayerCache, blocks_for
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
from ixsearch.runtime.sizes import layer_bytes, score_bytes, state_bytes
from ixsearch.runtime.state import State, topk_on
from ixsearch.runtime.step import Step
from ixsearch.runtime.trie import Node, PatternTrie

STATE_BYTES = 1 << 28
"""Documents go through the layers together as long as their live states fit in this."""
LOGIT_ELEMENTS = 1 << 22
Item = TypeVar("Item")
HOST = torch.device("cpu")


@dataclass(frozen=True)
class _Pass:
    """A document on its way through the layers. Its shapes never depend on the batch."""

    document: Document
    step: Step
    scratch: LayerCache
    """One layer's cache: nothing of a layer is needed once the layer is done."""
    states: list[State]


class Scorer:
    """Keeps the baseline's final hidden states of every document it has seen."""

    def __init__(self, model: DsaModel) -> None:
        self.model = model
        self._baseline = Pattern.from_full(model.config.num_hidden_layers, model.indexer_layers)
        self._baseline_hidden: dict[str, torch.Tensor] = {}

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
            if group and used + size > STATE_BYTES:
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
        half of the patterns: to score a part gives the same.
        """
        try:
            return list(self._score_group(documents, patterns, progress))
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            said = first_line(error)
        # The error is gone, and with it all that the pass held.
        self.model.top.release()
        give_back_unused(self.model.device)
        if len(documents) > 1:
            parts = zip(_halves(documents), _two_parts(progress), strict=True)
            return [row for half, at in parts for row in self._score_fitting(half, patterns, at)]
        if len(patterns) > 1:
            parts = zip(_halves(patterns), _two_parts(progress), strict=True)
            rows = [self._score_fitting(documents, half, at)[0] for half, at in parts]
            return [[score for row in rows for score in row]]
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
        trie = PatternTrie(run)
        place = self._place_of_states(documents, trie)
        passes = [self._start(document, place) for document in documents]
        self.model.top.release()
        layers = iter(self.model.layers)
        for done, nodes in enumerate(trie.levels, 1):
            layer = next(layers)
            for one in passes:
                self._advance(layer, one, nodes, place)
            del layer  # before the next one comes
            progress(done / len(trie.levels))
        for one in passes:
            yield self._finish(one, trie, patterns)

    @property
    def _state_bytes(self) -> int:
        """Of a token: its hidden state and its top-k."""
        c = self.model.config
        return state_bytes(c.hidden_size, c.index_topk, self.model.dtype.itemsize)

    def _place_of_states(self, documents: Sequence[Document], trie: PatternTrie) -> torch.device:
        """The device, unless there is no room for all states: then host memory, from where each
        document's are moved in for their turn at a layer.
        """
        c, room = self.model.config, self.model.state_room
        tokens = sum(len(document.tokens) for document in documents)
        form = self.model.cache_format
        scratch = form.latent_bytes(c) + form.indexer_bytes(c)
        longest = max(len(document.tokens) for document in documents)
        work = score_bytes(longest) + longest * layer_bytes(c, self.model.dtype.itemsize)
        needed = tokens * (self._state_bytes * (trie.width + 1) + scratch) + work
        place = self.model.device if room is None or needed <= room else HOST
        if not self.model.resident and place.type == "cpu" and needed > host_memory():
            raise IxsearchError(
                f"the states of {trie.width} prefixes of patterns over {tokens:,} tokens, and a"
                f" document in work, take {needed:,} bytes, more than this machine's memory: give"
                " fewer documents, or shorter ones"
            )
        return place

    def _start(self, document: Document, place: torch.device) -> _Pass:
        model = self.model
        table = list(range(blocks_for(len(document.tokens))))
        tokens = torch.tensor(document.tokens, device=model.device)
        return _Pass(
            document,
            Step.prefill(table, 0, len(document.tokens), model.device),
            LayerCache.allocate(model.config, True, len(table), model.cache_format, model.device),
            [State(model.embed(tokens).to(place), None)],
        )

    def _advance(
        self, layer: DecoderLayer, one: _Pass, nodes: Sequence[Node], place: torch.device
    ) -> None:
        """Take every live state of a document through a layer, parent after parent: only one of
        them, and what becomes of it, need be on the device.
        """
        after: list[State | None] = [None] * len(nodes)
        for parent, resting in enumerate(one.states):
            state = resting.on(self.model.device)
            for i, node in enumerate(nodes):
                if node.parent == parent:
                    after[i] = self._through(layer, one, state, node.full, resting, place)
        one.states[:] = after

    def _through(
        self,
        layer: DecoderLayer,
        one: _Pass,
        state: State,
        full: bool,
        resting: State,
        place: torch.device,
    ) -> State:
        """`resting` is `state` at its place: a top-k that is carried on stays the one there."""
        x_Td, carried = layer(
            state.x_Td, full, state.carried, one.scratch, self.model.table, one.step
        )
        kept = resting.carried if carried is state.carried else topk_on(carried, place)
        return State(x_Td.to(place), kept)

    def _finish(
        self, one: _Pass, trie: PatternTrie, patterns: Sequence[Pattern]
    ) -> list[DocumentScore]:
        document, targets = one.document, _targets(one.document)
        if document.digest not in self._baseline_hidden:
            kept = self._at_leaf(one, trie, self._baseline, targets)
            self._baseline_hidden[document.digest] = kept.to(one.states[0].x_Td.device)
        reference = self._baseline_hidden[document.digest]
        return [self._compare(one, trie, pattern, targets, reference) for pattern in patterns]

    def _at_leaf(
        self, one: _Pass, trie: PatternTrie, pattern: Pattern, targets: list[int]
    ) -> torch.Tensor:
        """Normed hidden states that predict the targets."""
        x_Td = one.states[trie.leaf(pattern)].x_Td
        if not x_Td.isfinite().all():  # of all tokens: a request would have failed too
            raise document_error(self.model, one.document, pattern)
        rows = torch.tensor(targets, device=self.model.device) - 1
        return self.model.final_norm(x_Td.to(self.model.device))[rows]

    def _compare(
        self,
        one: _Pass,
        trie: PatternTrie,
        pattern: Pattern,
        targets: list[int],
        reference: torch.Tensor,
    ) -> DocumentScore:
        document, hidden = one.document, self._at_leaf(one, trie, pattern, targets)
        losses, divergences, hits = self._by_target(document, targets, reference, hidden)
        if not bool(losses.isfinite().all() & divergences.isfinite().all()):
            raise document_error(self.model, document, pattern)
        scored = set(document.scored_targets(self.model.config.index_topk))
        keep = torch.tensor([t in scored for t in targets], device=hidden.device)
        right = dict(zip(targets, hits.tolist(), strict=True))
        return DocumentScore(
            tokens=len(scored),
            loss_sum=float(losses[keep].sum()),
            divergence_sum=float(divergences[keep].sum()),
            matches=tuple(all(right[t] for t in range(a, b)) for a, b in document.answers),
        )

    def _by_target(
        self,
        document: Document,
        targets: list[int],
        reference: torch.Tensor,
        hidden: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Of each target its loss and its divergence, nats, and whether it is the best token."""
        tokens = torch.tensor(document.tokens, device=hidden.device)[targets]
        loss, divergence, hit = [], [], []
        step = max(1, LOGIT_ELEMENTS // self.model.config.vocab_size)
        for start in range(0, len(targets), step):
            part = slice(start, start + step)
            base = self.model.logits(reference[part].to(hidden.device)).double().log_softmax(-1)
            logits = self.model.logits(hidden[part])
            log_q = logits.double().log_softmax(-1)
            loss.append(-log_q.gather(1, tokens[part, None])[:, 0])
            divergence.append((base.exp() * (base - log_q)).sum(-1))
            hit.append(logits.argmax(-1) == tokens[part])
        return torch.cat(loss), torch.cat(divergence), torch.cat(hit)


def _targets(document: Document) -> list[int]:
    """Positions whose prediction is looked at: those of the answers, else all."""
    spans = document.answers or ((1, len(document.tokens)),)
    return sorted({t for a, b in spans for t in range(a, b)})


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
