"""Greedy decoding with drafts: the MTP layer proposes tokens, the model checks them in one forward.

What is written is what plain greedy decoding writes: a draft stays only where it is the argmax of
the model's own logits. Only rounding can differ, since a step of several tokens multiplies other
shapes; places where that could decide are counted (`Speculation.near_ties`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.cache import BLOCK_SIZE, LayerCache, PagedCache, blocks_for
from ixsearch.runtime.interface import Progress, Request
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.serving.blocks import BlockPool
from ixsearch.runtime.step import Part, Step

PREFILL_CHUNK = 1024
MAX_REQUESTS = 64

NEAR_TIE = {torch.float64: 2e-5, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}
"""Two best logits this close, as a share of the largest absolute logit, may change places.

float32: on the bundled model two runs of one computation differ by up to 1.0e-3 where logits reach
54. The 16-bit ones are a few of their roundings, not measured.
"""


@dataclass
class Speculation:
    """What drafting came to."""

    tokens: int = 0
    """Written."""
    forwards: int = 0
    """Of the model after the prompts; each takes a step of every live request."""
    drafted: int = 0
    accepted: int = 0
    """Drafts that are the model's own next tokens."""
    near_ties: list[tuple[int, int]] = field(default_factory=list)
    """(request, place among its new tokens) where the two best logits lie that close."""

    @property
    def acceptance(self) -> float:
        """Accepted of the drafted; NaN without any."""
        return self.accepted / self.drafted if self.drafted else float("nan")


class SpeculativeCache(PagedCache):
    """The caches of a pattern, and the MTP layer's beside them: one block table serves both."""

    def __init__(self, model: DsaModel, pattern: Pattern, blocks: int) -> None:
        form = model.cache_format
        super().__init__(model.config, pattern, blocks, form, model.device)
        self.mtp = LayerCache.allocate(model.config, True, blocks, form, model.device)

    def copy_block(self, source: int, target: int) -> None:
        super().copy_block(source, target)
        self.mtp.copy_block(source, target)


@dataclass
class SpeculatedRequest:
    """One request in flight."""

    request: Request
    order: int
    shared: int
    """Leading tokens whose rows the request before it, in sorted order, has cached already."""
    table: list[int] = field(default_factory=list)
    new: list[int] = field(default_factory=list)
    drafts: list[int] = field(default_factory=list)
    y_d: torch.Tensor | None = None
    """What the MTP layer gave at its last row: position `length` - 2, or that of the last but one
    draft."""

    @property
    def length(self) -> int:
        """Tokens of the prompt and new ones."""
        return len(self.request.prompt) + len(self.new)

    @property
    def last(self) -> int:
        """The token that has not been through the model."""
        return self.new[-1]

    @property
    def capacity(self) -> int:
        return len(self.request.prompt) + self.request.max_new_tokens

    @property
    def finished(self) -> bool:
        stopped = bool(self.new) and self.new[-1] in self.request.stop_tokens
        return stopped or self.length >= self.capacity

    def wants_draft(self, most: int) -> bool:
        """Fewer drafts than allowed and than tokens are left; nothing is drafted past a stop."""
        stopped = bool(self.drafts) and self.drafts[-1] in self.request.stop_tokens
        room = min(most, self.capacity - self.length - 1)
        return len(self.drafts) < room and not stopped

    def agreed(self, own: Sequence[int]) -> int:
        """Leading drafts that are the model's own tokens."""
        pairs = zip(self.drafts, own, strict=False)
        return next((i for i, (a, b) in enumerate(pairs) if a != b), len(self.drafts))


Span = tuple[SpeculatedRequest, int, int]
"""A request's tokens in a step: those at [start, start + count)."""


@torch.inference_mode()
def speculate(
    model: DsaModel,
    pattern: Pattern,
    requests: Sequence[Request],
    drafts: int = 1,
    progress: Progress | None = None,
) -> tuple[list[tuple[int, ...]], Speculation]:
    """New tokens of each request, as `generate` gives them, and what drafting came to.

    Args:
        drafts: tokens drafted for a step of a request, 1 or more.

    Raises:
        IxsearchError: the checkpoint has no MTP layer, or no drafts are wanted.
    """
    if model.mtp is None:
        raise IxsearchError(
            f"the checkpoint has no MTP layer (model.layers.{model.config.num_hidden_layers}.*),"
            " so nothing can draft: decode without drafts"
        )
    if drafts < 1:
        raise IxsearchError(f"{drafts} drafts a step: 1 or more are needed")
    results: list[tuple[int, ...]] = [()] * len(requests)
    counts, finished = Speculation(), 0
    for wave in _waves(requests):
        run = _Wave(model, pattern, wave, drafts, counts)
        run.prefill()
        for live in run.steps():
            if progress is not None:
                progress((finished + len(wave) - live) / len(requests))
        for one in wave:
            results[one.order] = tuple(one.new)
        finished += len(wave)
    counts.near_ties.sort()
    return results, counts


def _waves(requests: Sequence[Request]) -> Iterator[list[SpeculatedRequest]]:
    """Requests in sorted order, so that neighbours share the longest prefixes, some at a time."""
    order = sorted(range(len(requests)), key=lambda i: requests[i].prompt)
    for start in range(0, len(order), MAX_REQUESTS):
        wave: list[SpeculatedRequest] = []
        for i in order[start : start + MAX_REQUESTS]:
            prompt = requests[i].prompt
            if not prompt:
                raise ValueError("a prompt is empty: at least one token is needed")
            common = _common(wave[-1].request.prompt, prompt) if wave else 0
            # The MTP layer's row p holds token p + 1: its last common row is one token earlier.
            wave.append(SpeculatedRequest(requests[i], i, max(common - 1, 0)))
        yield wave


def _common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Leading tokens that are the same."""
    shorter = min(len(a), len(b))
    return next((i for i in range(shorter) if a[i] != b[i]), shorter)


class _Wave:
    """Requests that are decoded together."""

    def __init__(
        self,
        model: DsaModel,
        pattern: Pattern,
        wave: list[SpeculatedRequest],
        drafts: int,
        counts: Speculation,
    ) -> None:
        self.model = model
        self.wave = wave
        self.drafts = drafts
        self.counts = counts
        blocks = sum(blocks_for(one.capacity) - one.shared // BLOCK_SIZE for one in wave)
        self.cache = SpeculativeCache(model, pattern, blocks)
        self.pool = BlockPool(blocks, self.cache.copy_block)

    def prefill(self) -> None:
        """Run all prompts, each from where it leaves its neighbour's; write the first tokens."""
        donor: list[int] = []
        for one in self.wave:
            one.table = self.pool.fork(donor[: blocks_for(one.shared)])
            self.pool.reserve(one.table, one.shared, one.capacity)
            donor = one.table
            for begin in range(one.shared, len(one.request.prompt), PREFILL_CHUNK):
                self._prefill_chunk(one, begin)

    def _prefill_chunk(self, one: SpeculatedRequest, begin: int) -> None:
        prompt = one.request.prompt
        tokens = prompt[begin : begin + PREFILL_CHUNK]
        end = begin + len(tokens)
        step = Step.prefill(one.table, begin, len(tokens), self.model.device)
        hidden = self._run_model(tokens, step)
        following = prompt[begin + 1 : end + 1]
        if end == len(prompt):
            (own,), (tied,) = self._own_tokens(hidden[-1:])
            following = (*following, own)
            if one.request.max_new_tokens > 0:
                self._write(one, [own], [tied])
        one.y_d = self._run_mtp(following, hidden, step)[-1]

    def steps(self) -> Iterator[int]:
        """Step until all have finished; yields how many are still live."""
        live = [one for one in self.wave if not one.finished]
        while live:
            self._draft(live)
            live = self._verify(live)
            yield len(live)

    def _draft(self, live: list[SpeculatedRequest]) -> None:
        """Draft for every request that has room; the MTP layer goes on from its own output."""
        for one in live:
            one.drafts = []
        drafting = [one for one in live if one.wants_draft(self.drafts)]
        while drafting:
            y_Bd = torch.stack([one.y_d for one in drafting])
            for one, token in zip(drafting, _argmax(self.model.mtp.logits(y_Bd)), strict=True):
                one.drafts.append(token)
                self.counts.drafted += 1
            drafting = [one for one in drafting if one.wants_draft(self.drafts)]
            if drafting:
                self._recycle(drafting)

    def _recycle(self, drafting: list[SpeculatedRequest]) -> None:
        """One more row of the MTP layer, of the last draft. Its slot is written anew later, with
        the hidden state that the model gives there."""
        spans = [(one, one.length - 2 + len(one.drafts), 1) for one in drafting]
        tokens = [one.drafts[-1] for one in drafting]
        before = torch.stack([one.y_d for one in drafting])
        y_Bd = self._run_mtp(tokens, before, self._step(spans))
        for one, y_d in zip(drafting, y_Bd, strict=True):
            one.y_d = y_d

    def _verify(self, live: list[SpeculatedRequest]) -> list[SpeculatedRequest]:
        """Check all drafts in one forward, write what is right; the requests that go on.

        A rejected draft leaves rows in the caches behind the request's last token. Nothing reads
        them: each position is written by the forward that brings its token, before it is read.
        """
        spans = [(one, one.length - 1, 1 + len(one.drafts)) for one in live]
        tokens = [token for one in live for token in (one.last, *one.drafts)]
        hidden = self._run_model(tokens, self._step(spans))
        self.counts.forwards += 1
        own, tied = self._own_tokens(hidden)
        row, kept, going_on = 0, [], []
        for one, start, count in spans:
            agreed = one.agreed(own[row : row + count])
            self.counts.accepted += agreed
            rows = slice(row, row + agreed + 1)
            self._write(one, own[rows], tied[rows])
            if not one.finished:
                going_on.append((one, start, agreed + 1))
                kept.extend(range(row, row + agreed + 1))
            row += count
        if going_on:
            self._catch_up(going_on, [own[i] for i in kept], hidden[kept])
        return [one for one, _, _ in going_on]

    def _catch_up(self, spans: list[Span], following: list[int], hidden: torch.Tensor) -> None:
        """Run the MTP layer over the rows that the model has now confirmed."""
        y = self._run_mtp(following, hidden, self._step(spans))
        last = -1
        for one, _, count in spans:
            last += count
            one.y_d = y[last]

    def _write(self, one: SpeculatedRequest, own: list[int], tied: list[bool]) -> None:
        for token, close in zip(own, tied, strict=True):
            if close:
                self.counts.near_ties.append((one.order, len(one.new)))
            one.new.append(token)
            self.counts.tokens += 1
            if one.finished:
                return

    def _own_tokens(self, hidden_Td: torch.Tensor) -> tuple[list[int], list[bool]]:
        """The model's next token after each row, and whether it is a near-tie."""
        logits = self.model.logits(hidden_Td)
        first, second = logits.topk(2, dim=-1).values.unbind(-1)
        close = first - second <= NEAR_TIE[self.model.dtype] * logits.abs().amax(-1)
        return _argmax(logits), close.tolist()

    def _run_model(self, tokens: Sequence[int], step: Step) -> torch.Tensor:
        on_device = torch.tensor(tokens, device=self.model.device)
        return self.model.forward(on_device, self.cache, step)

    def _run_mtp(self, following: Sequence[int], hidden: torch.Tensor, step: Step) -> torch.Tensor:
        on_device = torch.tensor(following, device=self.model.device)
        return self.model.mtp(on_device, hidden, self.cache.mtp, self.model.table, step)

    def _step(self, spans: Sequence[Span]) -> Step:
        """Several tokens of each request: one decode row a token, causal by its position."""
        parts = [Part(one.table, start, count) for one, start, count in spans]
        return Step.of(parts, self.model.device, decode_width=1 + self.drafts)


def _argmax(logits: torch.Tensor) -> list[int]:
    return logits.argmax(-1).tolist()
