"""Continuous batching: requests in, one forward a step, tokens out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.patterns.counting import counted
from ixsearch.runtime.cache import BLOCK_SIZE, PagedCache, blocks_for
from ixsearch.runtime.interface import Request
from ixsearch.runtime.memory import (
    MemoryShortError,
    first_line,
    give_back_unused,
    in_bytes,
    is_out_of_memory,
    within_memory,
)
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.serving.blocks import BlockPool
from ixsearch.runtime.serving.prefix import BlockKeys, root_key
from ixsearch.runtime.serving.request import (
    Finish,
    Limits,
    LiveRequest,
    Wishes,
    check_length,
)
from ixsearch.runtime.serving.runner import Outcome, Runner
from ixsearch.runtime.serving.scheduler import Scheduler, Work
from ixsearch.runtime.serving.speculation import Speculation
from ixsearch.runtime.serving.stopping import Decode, finish_of
from ixsearch.runtime.sharing import checked_sources
from ixsearch.runtime.whole_numbers import are_tokens, is_whole


class Serving:
    """A model, a pattern, a cache of `blocks` blocks, and the requests that go through them.

    Args:
        decode: tokens to text; needed for stop strings only.
        reuse: keep what is computed for later requests that begin alike.
        identity: tells models apart in the keys of cached blocks.
        drafts: tokens that the model's MTP layer drafts for a decoding request in each step.

    Raises:
        MemoryShortError: the cache, the top-k buffer or the MTP layer does not fit.
        PatternError: the model cannot run the pattern.
        IxsearchError: drafts are wanted, and there is no MTP layer.
    """

    def __init__(
        self,
        model: DsaModel,
        pattern: Pattern,
        blocks: int,
        limits: Limits | None = None,
        decode: Decode | None = None,
        reuse: bool = True,
        identity: str = "",
        drafts: int = 0,
    ) -> None:
        limits = limits or Limits()
        model.check_pattern(pattern)
        _check_drafts(model, drafts)
        _check_blocks(blocks)
        cache = _allocate(model, pattern, blocks, drafts > 0)
        self.runner = _runner(model, cache, limits.tokens, drafts)
        self.speculation = Speculation()
        """Of all requests so far, by their numbers; only with drafts."""
        self.pool = BlockPool(blocks, self.runner.cache.copy_block)
        self.scheduler = Scheduler(self.pool, limits, reuse, drafts)
        self._decode = decode
        self._identity = identity
        self._submitted = 0

    @property
    def pattern(self) -> Pattern:
        return self.runner.cache.pattern

    @property
    def drafts(self) -> int:
        """Tokens that are drafted for a decoding request in each step."""
        return self.scheduler.drafts

    @property
    def busy(self) -> bool:
        """Is there a request that has not ended?"""
        return bool(self.scheduler.running or self.scheduler.waiting)

    def submit(self, request: Request, wishes: Wishes | None = None) -> LiveRequest:
        """Take a request in; `step` until it has its `completion`.

        Raises:
            IxsearchError: a prompt that is empty or of another vocabulary, more tokens than the
                model has positions or the cache room, stop strings without a tokenizer, or sources
                that the pattern cannot give.
        """
        wishes = wishes or Wishes()
        usual = self.pattern.sources()
        own = usual if wishes.sources is None else checked_sources(wishes.sources, self.pattern)
        self._check(request, wishes)
        tokens = list(request.prompt)
        keys = BlockKeys(root_key(self._identity, own), tokens)
        live = LiveRequest(self._submitted, request, wishes, own, tokens, keys)
        self._submitted += 1
        if request.max_new_tokens < 1 and not wishes.prompt_logprobs:
            live.complete(Finish.LENGTH)
        else:
            self.scheduler.waiting.append(live)
        return live

    @torch.inference_mode()
    def step(self) -> list[LiveRequest]:
        """Run one forward; the requests that ended with it."""
        work = self.scheduler.schedule()
        if not work:
            return []
        try:
            outcomes = self.runner.run(work)
        except (RuntimeError, MemoryError) as error:
            return [self._give_up_largest(work, error)]
        self.speculation.forwards += any(one.live.new for one in work)
        for one, outcome in zip(work, outcomes, strict=True):
            self._advance(one, outcome)
        return self._retire([one.live for one in work])

    def run(self) -> Iterator[LiveRequest]:
        """Step until every request has ended; gives each when it does."""
        while self.busy:
            yield from self.step()

    def cancel(self, live: LiveRequest) -> None:
        """End a request now; what it has written so far is kept."""
        if live.completion is None:
            self.scheduler.remove(live)
            live.complete(Finish.CANCELLED)

    def set_pattern(self, pattern: Pattern) -> None:
        """Serve another pattern from now on. What was cached is forgotten: it was another's.

        Raises:
            IxsearchError: a request has not ended.
            PatternError: the model cannot run the pattern.
            MemoryShortError: its caches do not fit; then this serving can serve no more.
        """
        self.runner.model.check_pattern(pattern)
        if pattern == self.pattern:
            return
        if self.busy:
            raise IxsearchError("the pattern cannot change while requests run: let them end first")
        self.pool.forget()
        model = self.runner.model
        within_memory(
            lambda: self.runner.set_pattern(pattern),
            model.device,
            lambda said: (
                f"out of memory: the caches of pattern {pattern} do not fit beside those of"
                f" {self.pattern}: serve it with a new and smaller cache"
                f" ({said}; {model.memory(pattern)})"
            ),
        )

    def set_drafts(self, drafts: int) -> None:
        """Draft so many tokens from now on.

        What was cached without drafts is forgotten when they begin: the MTP layer has not seen it.

        Raises:
            IxsearchError: a request has not ended, or drafts are wanted and there is no MTP layer.
        """
        if drafts == self.drafts:
            return
        _check_drafts(self.runner.model, drafts)
        if self.busy:
            raise IxsearchError("drafts cannot change while requests run: let them end first")
        if not self.drafts:
            self.pool.forget()
        model = self.runner.model
        within_memory(
            lambda: self.runner.set_drafts(drafts),
            model.device,
            lambda said: (
                "out of memory: the caches of the MTP layer do not fit beside the others: draft"
                f" with a new and smaller cache ({said}; {model.memory(self.pattern)})"
            ),
        )
        self.scheduler.drafts = drafts

    def _check(self, request: Request, wishes: Wishes) -> None:
        if not request.prompt:
            raise IxsearchError("a prompt is empty: at least one token is needed")
        config = self.runner.model.config
        vocabulary = config.vocab_size
        if not are_tokens(request.prompt, vocabulary):
            raise IxsearchError(f"a prompt has tokens outside of the vocabulary of {vocabulary}")
        check_length(f"request {self._submitted}", request, config.max_position_embeddings)
        if wishes.stop_strings and self._decode is None:
            raise IxsearchError("stop strings need a tokenizer: give the engine `decode`")
        if not all(wishes.stop_strings):
            raise IxsearchError("a stop string is empty: it would end every request at once")
        # The last token that is written never runs.
        needed = blocks_for(len(request.prompt) + max(request.max_new_tokens, 1) - 1)
        if needed > self.pool.blocks:
            raise IxsearchError(
                f"a prompt of {counted(len(request.prompt), 'token')} and"
                f" {request.max_new_tokens:,} new ones"
                f" need {counted(needed, 'cache block')}: there are"
                f" {self.pool.blocks:,}, of {BLOCK_SIZE} tokens"
            )

    def _advance(self, one: Work, outcome: Outcome) -> None:
        """Take in what a step gave: one token, or none, or (with drafts) several."""
        live = one.live
        if live.completion is not None:  # cancelled by another request's callback
            return
        if outcome.error is not None:
            live.complete(Finish.FAILED, outcome.error)
            return
        live.computed += one.count
        self._publish(live, live.computed - one.count)
        if outcome.next_tokens and live.request.max_new_tokens < 1:
            live.complete(Finish.LENGTH)
        first = len(live.new)
        for token in outcome.next_tokens:
            if live.completion is None:
                self._write(live, token)
        self._count(live, outcome, first)
        if len(outcome.next_tokens) > 1:  # accepted drafts have run already
            before, live.computed = live.computed, len(live.tokens) - 1
            self._publish(live, before)

    def _count(self, live: LiveRequest, outcome: Outcome, first: int) -> None:
        """Keep the record of drafts; `first`: the place of the step's first new token."""
        record, places = self.speculation, range(first, len(live.new))
        record.tokens += len(places)
        record.drafted += len(live.drafts)
        record.accepted += max(0, len(outcome.next_tokens) - 1)
        close = zip(places, outcome.near_ties, strict=False)
        found = [(live.number, place) for place, near in close if near]
        record.near_ties += found
        record.near_tie_count += len(found)

    def _write(self, live: LiveRequest, token: int) -> None:
        """Append a token. What the request's own callbacks raise ends this request only."""
        live.tokens.append(token)
        try:
            if live.wishes.on_token is not None:
                live.wishes.on_token(token)
            finish = finish_of(live, self._decode)
        except Exception as error:
            failure = IxsearchError(f"request {live.number}: its callback failed: {error!r}")
            failure.__cause__ = error
            live.complete(Finish.FAILED, failure)
        else:
            # The callback may have cancelled the request.
            if finish is not None and live.completion is None:
                live.complete(finish)

    def _publish(self, live: LiveRequest, before: int) -> None:
        """Let others find the blocks that were filled, and the last one of a prompt."""
        if not self.scheduler.reuse:
            return
        for block in range(before // BLOCK_SIZE, blocks_for(live.computed)):
            start = block * BLOCK_SIZE
            stop = min(start + BLOCK_SIZE, live.computed)
            full, ends_prompt = stop - start == BLOCK_SIZE, before < len(live.request.prompt)
            if full or ends_prompt:
                tokens = live.tokens[start:stop]
                self.pool.publish(live.table[block], live.keys.parent_of(block), tokens)

    def _retire(self, requests: Sequence[LiveRequest]) -> list[LiveRequest]:
        ended = [live for live in requests if live.completion is not None]
        for live in ended:
            if live in self.scheduler.running:
                self.scheduler.remove(live)
        return ended

    def _give_up_largest(self, work: Sequence[Work], error: BaseException) -> LiveRequest:
        """Out of memory: nothing of the step counts, and its largest request ends.

        The others run again in the next step.
        """
        if not is_out_of_memory(error):
            raise error
        model = self.runner.model
        give_back_unused(model.device)
        largest = max(work, key=lambda one: (one.count, one.live.number))
        live = largest.live
        live.complete(
            Finish.FAILED,
            MemoryShortError(
                f"request {live.number}: out of memory in a step of"
                f" {counted(sum(one.count for one in work), 'token')} of"
                f" {counted(len(work), 'request')}, {largest.count:,}"
                f" of them its own after {live.computed} cached; the cache takes"
                f" {in_bytes(self.runner.cache.bytes)}: use a smaller token budget or fewer"
                f" blocks ({first_line(error)}; {model.memory(self.pattern)})"
            ),
        )
        self.scheduler.remove(live)
        return live


def _check_drafts(model: DsaModel, drafts: int) -> None:
    if not is_whole(drafts):
        raise IxsearchError(f"{drafts} drafts a step: 0 or more can be made")
    if drafts and model.mtp is None:
        raise IxsearchError(
            f"the checkpoint has no MTP layer (model.layers.{model.config.num_hidden_layers}.*),"
            " so nothing can draft: decode without drafts"
        )


def _check_blocks(blocks: int) -> None:
    if not is_whole(blocks, 1):
        raise IxsearchError(f"a cache of {blocks!r} blocks: 1 or more are needed")


def _allocate(model: DsaModel, pattern: Pattern, blocks: int, mtp: bool) -> PagedCache:
    size = blocks * block_bytes(model, pattern, mtp)
    return within_memory(
        lambda: PagedCache(model.config, pattern, blocks, model.cache_format, model.device, mtp),
        model.device,
        lambda said: (
            f"a cache of {blocks} blocks, {BLOCK_SIZE} tokens each, takes {in_bytes(size)}"
            f" on {model.device} and does not fit: ask for fewer requests at a time or shorter ones"
            f" ({said}; {model.memory(pattern)})"
        ),
    )


def block_bytes(model: DsaModel, pattern: Pattern, mtp: bool) -> int:
    """What one block takes in the caches of all layers; nothing is allocated."""
    meta = torch.device("meta")
    return PagedCache(model.config, pattern, 1, model.cache_format, meta, mtp).bytes


def _runner(model: DsaModel, cache: PagedCache, tokens: int, drafts: int) -> Runner:
    size = tokens * (8 * model.config.index_topk + 4)
    return within_memory(
        lambda: Runner(model, cache, tokens, drafts),
        model.device,
        lambda said: (
            f"the top-k buffer of a step of {tokens:,} tokens takes {in_bytes(size)} on"
            f" {model.device} and does not fit: use a smaller token budget"
            f" ({said}; {model.memory(cache.pattern)})"
        ),
    )
