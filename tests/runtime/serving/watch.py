"""Looking into a running `Serving`, and forcing what it selects and writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch
import torch.nn.functional as F

from ixsearch import kernels
from ixsearch.runtime import indexer
from ixsearch.runtime.cache import BLOCK_SIZE
from ixsearch.runtime.mtp import MtpLayer
from ixsearch.runtime.serving import LiveRequest, runner
from ixsearch.runtime.serving.drafter import Drafter
from ixsearch.runtime.sharing import OwnSharing

from .reference import Reference


@dataclass(frozen=True)
class Rows:
    """Whose rows a forward of the model or the MTP layer is over."""

    lives: list[LiveRequest]
    tokens: list[tuple[int, ...]]
    """Of each request: what it had when the rows ran, and what stood behind that."""
    ahead: int
    """Tokens behind its own position that a row goes by: the MTP layer's 1."""

    def path(self, request: int, position: int) -> tuple[int, ...]:
        """The tokens that a row depends on."""
        return self.tokens[request][: position + self.ahead + 1]


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
    """By number and position: what followed. In the type that the model runs in."""
    drafting: dict[int, dict[int, torch.Tensor]] = field(default_factory=lambda: defaultdict(dict))
    """By number and position: what the MTP layer gave."""
    chosen: dict[tuple, set[frozenset[int]]] = field(default_factory=lambda: defaultdict(set))
    """By sources, tokens that a row goes by, and layer: the selections made there."""
    batch: runner.Batch | None = None
    _rows: Rows | None = None
    """None: rows of drafts that go on from drafts, which have no counterpart."""

    def __enter__(self) -> Watch:
        self._patch = pytest.MonkeyPatch()
        self._watch_batches()
        self._watch_drafts()
        self._watch_indexers()
        return self

    def __exit__(self, *error) -> None:
        self._patch.undo()

    def _around(self, owner: type, name: str, spy: Callable) -> None:
        """`spy` gets the plain function first."""
        plain = getattr(owner, name)
        self._patch.setattr(owner, name, lambda *args: spy(plain, *args))

    def _watch_batches(self) -> None:
        def batch_of(plain, work, *args):
            self.batch = plain(work, *args)
            lives = [one.live for one in work]
            self._rows = Rows(lives, [(*live.tokens, *live.drafts) for live in lives], 0)
            return self.batch

        def run(plain, this, work):
            self.forwards += 1
            with pytest.MonkeyPatch.context() as patch:
                logits = this.model.logits
                head = this.model.top.head
                patch.setattr(
                    this.model, "logits", lambda h: self._logits(logits(h), F.linear(h, head))
                )
                return plain(this, work)

        def converted(plain, *args):
            self.conversions += 1
            return plain(*args)

        def own_sharing(plain, *args):
            self.own_sharings += 1
            plain(*args)

        self._around(runner.Batch, "of", batch_of)
        self._around(runner.Runner, "run", run)
        self._around(kernels, "physical_indices", converted)
        self._around(OwnSharing, "__init__", own_sharing)

    def _logits(self, found, exact):
        """One row a request that has run all its tokens, and one a draft of it."""
        ends = [one.live for one in self.batch.work if one.ends]
        found, first = found.clone(), 0
        for live in ends:
            rows = slice(first, first + 1 + len(live.drafts))
            self._request_logits(live, found[rows], exact[rows])
            first = rows.stop
        assert first == len(found)
        return found

    def _request_logits(self, live, rows, exact) -> None:
        """Rows behind a draft that is not the model's own token are nobody's."""
        forced = self.forced.get(live.number, [])
        for place, draft in enumerate([*live.drafts, None]):
            at = len(live.tokens) + place
            self.logits[live.number][at - 1] = exact[place].cpu()
            if at < len(forced):
                rows[place, forced[at]] = 1e6
            if draft != int(rows[place].argmax()):
                return

    def _watch_drafts(self) -> None:
        outcomes = []

        def draft(plain, this, work):
            self._rows = None
            return plain(this, work)

        def follow(plain, this, batch, found, hidden):
            outcomes[:] = [one.next_tokens for one in found]
            lives = [one.live for one in batch.work]
            tokens = [(*live.tokens, *new) for live, new in zip(lives, outcomes, strict=True)]
            self._rows = Rows(lives, tokens, 1)
            plain(this, batch, found, hidden)
            self._rows = None

        def mtp(plain, this, following, hidden, cache, table, step):
            y = plain(this, following, hidden, cache, table, step)
            if self._rows is not None and self._rows.ahead:
                for row, (request, position) in enumerate(_places(step)):
                    number = self._rows.lives[request].number
                    self.drafting[number][position] = y[row].cpu()
            return y

        self._around(Drafter, "draft", draft)
        self._around(Drafter, "follow", follow)
        self._around(MtpLayer, "__call__", mtp)

    def _watch_indexers(self) -> None:
        def call(plain, this, *args):
            self.indexer_calls.append(this.layer)
            return plain(this, *args)

        def select(plain, this, q, weights, keys, step):
            topk = plain(this, q, weights, keys, step)
            return topk if self._rows is None else self._selected(this.layer, topk, step)

        self._around(indexer.Indexer, "__call__", call)
        self._around(indexer.Indexer, "_select", select)

    def _selected(self, layer, topk, step):
        logical = topk.logical_TK.clone()
        rows = logical.tolist()
        for row, (request, position) in enumerate(_places(step)):
            live, path = self._rows.lives[request], self._rows.path(request, position)
            if not self._rows.ahead and live.sources[layer] != layer:
                continue
            self.chosen[live.sources, path, layer].add(frozenset(rows[row]) - {-1})
            reference = self.injected.get(live.number)
            if reference is not None and reference.tokens[: len(path)] == path:
                logical[row] = reference.logical[layer][position].to(logical.device)
        slots, counts = kernels.physical_indices(
            logical, step.request_T, step.block_table_BM, BLOCK_SIZE
        )
        self.conversions -= 1
        return indexer.TopK(layer, logical, slots, counts)


def _places(step) -> list[tuple[int, int]]:
    """(request, position) of each row."""
    return list(zip(step.request_T.tolist(), step.positions_T.tolist(), strict=True))
