"""Which tokens of which requests run in the next step."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from ixsearch.runtime.cache import BLOCK_SIZE
from ixsearch.runtime.serving.blocks import BlockPool
from ixsearch.runtime.serving.request import Limits, LiveRequest

WORTH_WAITING = 16
"""Tokens that a running prefill must save a request to make it wait for that."""


@dataclass(frozen=True)
class Work:
    """The next `count` tokens of a request."""

    live: LiveRequest
    count: int
    drafts: int = 0
    """At most so many drafts run behind them."""

    @property
    def ends(self) -> bool:
        """Does the next token follow from this?"""
        return self.count == self.live.remaining


class Scheduler:
    """Requests that wait, in order, and those that run, oldest first."""

    def __init__(
        self, pool: BlockPool, limits: Limits, reuse: bool = True, drafts: int = 0
    ) -> None:
        """`drafts`: so many are made for a decoding request, where there is room for them."""
        self.pool = pool
        self.limits = limits
        self.reuse = reuse
        """Start from what is cached of a prompt."""
        self.waiting: deque[LiveRequest] = deque()
        self.running: list[LiveRequest] = []
        self.drafts = drafts
        self._counts: dict[LiveRequest, int] = {}
        self._drafts: dict[LiveRequest, int] = {}

    def schedule(self) -> list[Work]:
        """The next step's work, decoding requests first; empty when there is none.

        When blocks run out, the newest requests are set back: they give up their blocks and wait
        to be computed again.

        Raises:
            RuntimeError: no request can ever run, since blocks are held from outside.
        """
        self._counts, self._drafts = {}, {}
        prefills = [live for live in self.running if live.prefilling]
        decodes = [live for live in self.running if not live.prefilling]
        if self.limits.prefill_first:
            self._run(prefills)
            self._admit()
            if not self._counts:
                self._run(decodes)
        else:
            self._run(decodes)
            self._run(prefills)
            self._admit()
        if self.waiting and not self._counts:
            raise RuntimeError(
                f"{self.pool.available} of {self.pool.blocks} blocks, too few to run"
            )
        work = [Work(live, n, self._drafts.get(live, 0)) for live, n in self._counts.items()]
        return sorted(work, key=lambda one: one.count > 1)

    def remove(self, live: LiveRequest) -> None:
        """Forget a request, wherever it is, and free its blocks."""
        (self.running if live in self.running else self.waiting).remove(live)
        self.pool.release(live.table)

    @property
    def _budget(self) -> int:
        return self.limits.tokens - sum(self._counts.values()) - sum(self._drafts.values())

    def _run(self, requests: Sequence[LiveRequest]) -> None:
        for i, live in enumerate(requests):
            count = min(live.remaining, self._budget)
            if count and live in self.running and self._make_room(live, count):
                self._counts[live] = count
                self._add_drafts(live, self._budget - len(requests[i + 1 :]))

    def _add_drafts(self, live: LiveRequest, spare: int) -> None:
        """Drafts take what others leave: no request waits or is set back for them."""
        count = min(self.drafts, live.worth_drafting, spare)
        start = live.computed
        if count > 0 and self.pool.reserve(live.table, start, start + 1 + count):
            self._drafts[live] = count

    def _make_room(self, live: LiveRequest, count: int) -> bool:
        """Reserve blocks; whoever came later than `live` is set back for it, or itself."""
        while not self.pool.reserve(live.table, live.computed, live.computed + count):
            newest = max(self.running, key=lambda one: one.number)
            self._set_back(newest)
            if newest is live:
                return False
        return True

    def _set_back(self, live: LiveRequest) -> None:
        self.running.remove(live)
        self._counts.pop(live, None)
        self._drafts.pop(live, None)
        live.draft_state = None
        self.pool.release(live.table)
        live.computed = 0
        live.preemptions += 1
        self.waiting.appendleft(live)

    def _admit(self) -> None:
        """Start requests that wait, first come first served, while there is room."""
        for live in list(islice(self.waiting, self.limits.requests)):
            if self._budget < 1 or len(self.running) >= self.limits.requests:
                return
            blocks, reused = self._cached(live)
            if self.reuse and self._somebody_computes(live, reused):
                continue
            if not self._start(live, blocks, reused):
                return
            self._counts[live] = min(live.remaining, self._budget)

    def _cached(self, live: LiveRequest) -> tuple[list[int], int]:
        """The last token always runs: what follows it is wanted."""
        if not self.reuse or live.wishes.prompt_logprobs:
            return [], 0
        blocks, length = self.pool.find(live.keys, live.tokens, len(live.tokens) - 1)
        return blocks, self._reusable(length)

    def _reusable(self, length: int) -> int:
        """Of so many cached tokens. The MTP layer's row p goes by token p + 1, so of the last
        token that two requests have in common it has another's row.
        """
        return max(0, length - 1) if self.drafts else length

    def _somebody_computes(self, live: LiveRequest, reused: int) -> bool:
        if live.wishes.prompt_logprobs:
            return False
        enough = reused + WORTH_WAITING
        return any(r.prefilling and r.keys.common(live.keys) > enough for r in self.running)

    def _start(self, live: LiveRequest, blocks: list[int], reused: int) -> bool:
        """Reserve blocks for all of a request's tokens; False when there are too few.

        One a running request must be left, or the next steps would set requests back again.
        """
        table = self.pool.fork(blocks)
        fits = self.pool.reserve(table, reused, len(live.tokens))
        if not fits or self.pool.available < len(self.running):
            self.pool.release(table)
            # To go on from the middle of a cached block takes one block more.
            whole = reused // BLOCK_SIZE
            return whole < len(blocks) and self._start(
                live, blocks[:whole], self._reusable(whole * BLOCK_SIZE)
            )
        live.table, live.computed, live.reused = table, reused, reused
        self.waiting.remove(live)
        self.running.append(live)
        return True
