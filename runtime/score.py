"""Scoring many patterns in one pass: layer by layer, over the trie of their prefixes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.cache import LayerCache, blocks_for
from ixsearch.runtime.indexer import TopK
from ixsearch.runtime.interface import Document, DocumentScore, Progress
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.step import Step
from ixsearch.runtime.trie import PatternTrie

STATE_BYTES = 1 << 28
"""Documents go through the layers together as long as their live states fit in this."""
LOGIT_ELEMENTS = 1 << 22


@dataclass
class _State:
    """What one prefix has come to: hidden states and the top-k carried on."""

    x_Td: torch.Tensor
    carried: TopK | None


@dataclass(frozen=True)
class _Pass:
    """A document on its way through the layers. Its shapes never depend on the batch."""

    document: Document
    step: Step
    scratch: LayerCache
    """One layer's cache: nothing of a layer is needed once the layer is done."""
    states: list[_State]


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
        if not patterns:
            return []
        found: list[list[DocumentScore]] = [[] for _ in patterns]
        done = 0
        for group in self._groups(documents, len(set(patterns))):
            share = len(group) / len(documents)
            report = _part(progress, done / len(documents), share)
            for row in self._score_group(group, patterns, report):
                for scores, score in zip(found, row, strict=True):
                    scores.append(score)
            done += len(group)
        return found

    def _groups(self, documents: Sequence[Document], patterns: int) -> Iterator[list[Document]]:
        c = self.model.config
        token = c.hidden_size * self.model.dtype.itemsize + c.index_topk * 8
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

    def _score_group(
        self, documents: list[Document], patterns: Sequence[Pattern], progress: Progress
    ) -> Iterator[list[DocumentScore]]:
        known = all(d.digest in self._baseline_hidden for d in documents)
        run = patterns if known else [self._baseline, *patterns]
        trie = PatternTrie(run)
        passes = [self._start(document) for document in documents]
        for layer, nodes in enumerate(trie.levels):
            for one in passes:
                one.states[:] = [
                    self._advance(layer, one, one.states[node.parent], node.full) for node in nodes
                ]
            progress((layer + 1) / len(trie.levels))
        for one in passes:
            yield self._finish(one, trie, patterns)

    def _start(self, document: Document) -> _Pass:
        model = self.model
        table = list(range(blocks_for(len(document.tokens))))
        tokens = torch.tensor(document.tokens, device=model.device)
        return _Pass(
            document,
            Step.prefill(table, 0, len(document.tokens), model.device),
            LayerCache.allocate(model.config, True, len(table), model.cache_format, model.device),
            [_State(model.embed(tokens), None)],
        )

    def _advance(self, layer: int, one: _Pass, state: _State, full: bool) -> _State:
        return _State(
            *self.model.run_layer(layer, state.x_Td, full, state.carried, one.scratch, one.step)
        )

    def _finish(
        self, one: _Pass, trie: PatternTrie, patterns: Sequence[Pattern]
    ) -> list[DocumentScore]:
        document, targets = one.document, _targets(one.document)
        if document.digest not in self._baseline_hidden:
            leaf = one.states[trie.leaf(self._baseline)]
            self._baseline_hidden[document.digest] = self._at(leaf, targets)
        reference = self._baseline_hidden[document.digest]
        return [
            self._compare(document, targets, reference, self._at(one.states[trie.leaf(p)], targets))
            for p in patterns
        ]

    def _at(self, state: _State, targets: list[int]) -> torch.Tensor:
        """Normed hidden states that predict the targets."""
        rows = torch.tensor(targets, device=state.x_Td.device) - 1
        return self.model.final_norm(state.x_Td)[rows]

    def _compare(
        self,
        document: Document,
        targets: list[int],
        reference: torch.Tensor,
        hidden: torch.Tensor,
    ) -> DocumentScore:
        tokens = torch.tensor(document.tokens, device=hidden.device)[targets]
        loss, divergence, hit = [], [], []
        step = max(1, LOGIT_ELEMENTS // self.model.config.vocab_size)
        for start in range(0, len(targets), step):
            part = slice(start, start + step)
            base = self.model.logits(reference[part]).double().log_softmax(-1)
            logits = self.model.logits(hidden[part])
            log_q = logits.double().log_softmax(-1)
            loss.append(-log_q.gather(1, tokens[part, None])[:, 0])
            divergence.append((base.exp() * (base - log_q)).sum(-1))
            hit.append(logits.argmax(-1) == tokens[part])
        scored = set(document.scored_targets(self.model.config.index_topk))
        keep = torch.tensor([t in scored for t in targets], device=hidden.device)
        right = dict(zip(targets, torch.cat(hit).tolist(), strict=True))
        return DocumentScore(
            tokens=len(scored),
            loss_sum=float(torch.cat(loss)[keep].sum()),
            divergence_sum=float(torch.cat(divergence)[keep].sum()),
            matches=tuple(all(right[t] for t in range(a, b)) for a, b in document.answers),
        )


def _targets(document: Document) -> list[int]:
    """Positions whose prediction is looked at: those of the answers, else all."""
    spans = document.answers or ((1, len(document.tokens)),)
    return sorted({t for a, b in spans for t in range(a, b)})


def _part(progress: Progress | None, done: float, share: float) -> Progress:
    def report(fraction: float) -> None:
        if progress is not None:
            progress(done + share * fraction)

    return report
