"""Looking into a running `Serving`, and the one-shot forward to hold it against."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import pytest
import torch

from ixsearch import kernels
from ixsearch.runtime import indexer
from ixsearch.runtime.cache import BLOCK_SIZE, PagedCache, blocks_for
from ixsearch.runtime.serving import runner
from ixsearch.runtime.sharing import OwnSharing
from ixsearch.runtime.step import Step

NEAR = 1e-4
"""Two index scores, or two logits, this near (of their size) may come out either way."""


@dataclass
class Reference:
    """A request's tokens in one forward by themselves: nothing shared, cached or batched."""

    logits: torch.Tensor
    logical: dict[int, torch.Tensor]
    scores: dict[int, torch.Tensor]

    def logprob(self, position: int, token: int) -> float:
        return float(self.logits[position].double().log_softmax(-1)[token])

    def is_best(self, position: int, token: int) -> str:
        """yes, tied (as good as the best but for rounding) or no."""
        row = self.logits[position]
        if int(row.argmax()) == token:
            return "yes"
        return "tied" if float(row.max() - row[token]) <= NEAR * float(row.abs().max()) else "no"

    def swapped_within_rounding(self, layer: int, position: int, chosen: set[int]) -> bool:
        """Were only positions of (nearly) equal score exchanged?"""
        row = self.scores[layer][position]
        own = set(self.logical[layer][position].tolist()) - {-1}
        lost, won = row[sorted(own - chosen)], row[sorted(chosen - own)]
        size = 1 + float(row[: position + 1].abs().max())
        return len(lost) == len(won) and float(lost.max() - won.min()) <= NEAR * size


@torch.inference_mode()
def one_shot(model, sources, tokens) -> Reference:
    """All tokens at once; `sources`: for each layer the layer whose indices it reads."""
    pattern = model_pattern(sources)
    blocks = blocks_for(len(tokens))
    cache = PagedCache(model.config, pattern, blocks, model.cache_format, model.device)
    step = Step.prefill(list(range(blocks)), 0, len(tokens), model.device)
    scores: dict[int, torch.Tensor] = {}
    logical: dict[int, torch.Tensor] = {}
    plain = indexer.Indexer._select, indexer.Indexer._topk

    def topk(self, found, lengths):
        scores[self.layer] = found.clone()
        return plain[1](self, found, lengths)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexer.Indexer, "_topk", topk)
        x, found = model.embed(torch.tensor(tokens)), {}
        for layer, source in enumerate(sources):
            carried = found.get(source)
            x, found[layer] = model.run_layer(
                layer, x, source == layer, carried, cache.layers[layer], step
            )
            logical[layer] = found[layer].logical_TK
    return Reference(model.logits(model.final_norm(x)), logical, scores)


def model_pattern(sources):
    from ixsearch.patterns import Pattern

    return Pattern("".join("F" if s == i else "S" for i, s in enumerate(sources)))


@dataclass
class Watch:
    """Records what goes on in servings while it is entered; may inject and force.

    Args:
        injected: for each request's number the reference whose indices it takes.
        forced: for each request's number all its tokens: it writes these, whatever is best.
    """

    injected: dict[int, Reference] = field(default_factory=dict)
    forced: dict[int, list[int]] = field(default_factory=dict)
    forwards: int = 0
    indexer_calls: list[int] = field(default_factory=list)
    conversions: int = 0
    own_sharings: int = 0
    logits: dict[int, dict[int, torch.Tensor]] = field(default_factory=lambda: defaultdict(dict))
    """By number and position: what followed."""
    chosen: dict[tuple, set[frozenset[int]]] = field(default_factory=lambda: defaultdict(set))
    """By sources, tokens up to a position and layer: the selections made there."""
    batch: runner.Batch | None = None

    def __enter__(self) -> Watch:
        self._patch = pytest.MonkeyPatch()
        self._watch_batches()
        self._watch_indexers()
        return self

    def __exit__(self, *error) -> None:
        self._patch.undo()

    def _watch_batches(self) -> None:
        run, of, convert = runner.Runner.run, runner.Batch.of, kernels.physical_indices
        own = OwnSharing.__init__

        def batch_of(work, device):
            self.batch = of(work, device)
            return self.batch

        def spied_run(this, work):
            self.forwards += 1
            logits = this.model.logits
            this.model.logits = lambda hidden: self._logits(logits(hidden))
            try:
                return run(this, work)
            finally:
                del this.model.logits

        def converted(*args):
            self.conversions += 1
            return convert(*args)

        def own_sharing(this, *args):
            self.own_sharings += 1
            own(this, *args)

        self._patch.setattr(runner.Batch, "of", batch_of)
        self._patch.setattr(runner.Runner, "run", spied_run)
        self._patch.setattr(kernels, "physical_indices", converted)
        self._patch.setattr(OwnSharing, "__init__", own_sharing)

    def _logits(self, found):
        ends = [one.live for one in self.batch.work if one.ends]
        found = found.clone()
        for live, row in zip(ends, found, strict=True):
            self.logits[live.number][len(live.tokens) - 1] = row.clone()
            if live.number in self.forced and len(live.tokens) < len(self.forced[live.number]):
                row[self.forced[live.number][len(live.tokens)]] = 1e6
        return found

    def _watch_indexers(self) -> None:
        call, select = indexer.Indexer.__call__, indexer.Indexer._select

        def spied_call(this, *args):
            self.indexer_calls.append(this.layer)
            return call(this, *args)

        def spied_select(this, q, weights, keys, step):
            return self._selected(this.layer, select(this, q, weights, keys, step), step)

        self._patch.setattr(indexer.Indexer, "__call__", spied_call)
        self._patch.setattr(indexer.Indexer, "_select", spied_select)

    def _selected(self, layer, topk, step):
        logical = topk.logical_TK.clone()
        pairs = zip(step.request_T.tolist(), step.positions_T.tolist(), strict=True)
        for row, (request, position) in enumerate(pairs):
            live = self.batch.work[request].live
            if live.sources[layer] != layer:
                continue
            chosen = frozenset(logical[row].tolist()) - {-1}
            self.chosen[live.sources, tuple(live.tokens[: position + 1]), layer].add(chosen)
            if live.number in self.injected:
                logical[row] = self.injected[live.number].logical[layer][position]
        slots, counts = kernels.physical_indices(
            logical, step.request_T, step.block_table_BM, BLOCK_SIZE
        )
        self.conversions -= 1
        return indexer.TopK(layer, logical, slots, counts)


def near_ties(watch: Watch, reference: Reference, sources, tokens) -> list[int]:
    """Positions where another selection was made than in the reference.

    Fails unless each first cause (no earlier layer or position chose otherwise) is a near-tie.
    """
    changed: list[int] = []
    for layer in sorted(reference.scores):
        here = []
        for position in range(len(tokens)):
            own = frozenset(reference.logical[layer][position].tolist()) - {-1}
            seen = watch.chosen.get((sources, tuple(tokens[: position + 1]), layer), set())
            others = [chosen for chosen in seen if chosen != own]
            if not others:
                continue
            if not any(p <= position for p in changed):
                for chosen in others:
                    assert reference.swapped_within_rounding(layer, position, set(chosen))
            here.append(position)
        changed += here
    return sorted(set(changed))
