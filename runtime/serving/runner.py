"""One step on the model: from work to next tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.cache import PagedCache
from ixsearch.runtime.logprobs import token_logprobs
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.not_finite import BEHIND_THE_LAYERS, NotFiniteError, likely_cause
from ixsearch.runtime.serving.drafter import Drafter
from ixsearch.runtime.serving.guards import first_bad_places
from ixsearch.runtime.serving.prefix import common_prefix
from ixsearch.runtime.serving.request import LiveRequest
from ixsearch.runtime.serving.scheduler import Work
from ixsearch.runtime.serving.speculation import near_ties
from ixsearch.runtime.sharing import GroupSharing, OwnSharing, Sharing, TopKBuffer
from ixsearch.runtime.step import Part, Step


@dataclass
class Outcome:
    """What a step gave for one request."""

    next_tokens: tuple[int, ...] = ()
    """What follows the request's tokens, if all of them have run: the drafts that are right, and
    one token of the model's own."""
    near_ties: tuple[bool, ...] = ()
    """With drafts, for each of them: could rounding have decided it?"""
    error: NotFiniteError | None = None


@dataclass(frozen=True)
class Batch:
    """The work of one step, as tensors."""

    work: Sequence[Work]
    parts: Sequence[Part]
    step: Step
    tokens_T: torch.Tensor

    @classmethod
    def of(cls, work: Sequence[Work], device: torch.device, drafts: int = 0) -> Batch:
        """`drafts`: the most that a request may have."""
        parts, tokens = [], []
        for one in work:
            live, start = one.live, one.live.computed
            own = live.tokens[start : start + one.count] + live.drafts
            parts.append(Part(live.table, start, len(own)))
            tokens += own
        step = Step.of(parts, device, decode_width=1 + drafts)
        return cls(work, parts, step, torch.tensor(tokens, device=device))

    def rows(self, i: int) -> slice:
        """The rows of request i."""
        start = sum(part.count for part in self.parts[:i])
        return slice(start, start + self.parts[i].count)

    def checked_rows(self, i: int) -> range:
        """Those of request i's last token and its drafts."""
        stop = self.rows(i).stop
        return range(stop - 1 - len(self.work[i].live.drafts), stop)


class Runner:
    """Runs steps over one cache and one top-k buffer."""

    def __init__(self, model: DsaModel, cache: PagedCache, rows: int, drafts: int = 0) -> None:
        self.model = model
        self.cache = cache
        self.set_drafts(drafts)
        self.buffer = TopKBuffer(rows, model.config.index_topk, model.device)

    def set_drafts(self, drafts: int) -> None:
        """So many a request and step; the cache has pages for the MTP layer where there are any."""
        self.cache.set_mtp(drafts > 0)
        self.drafter = Drafter(self.model, self.cache.mtp, drafts) if drafts else None

    def set_pattern(self, pattern: Pattern) -> None:
        self.cache.set_pattern(pattern)

    def run(self, work: Sequence[Work]) -> list[Outcome]:
        """One forward over all of `work`, in its order: decoding requests first."""
        batch = self._batch(work)
        sharing = self._sharing(batch)
        hidden = self.model.forward(batch.tokens_T, self.cache, batch.step, sharing)
        ends = [i for i, one in enumerate(work) if one.ends]
        checked = [batch.checked_rows(i) for i in ends]
        logits = self.model.logits(hidden[[row for rows in checked for row in rows]])
        by_request = dict(zip(ends, logits.split([len(rows) for rows in checked]), strict=True))
        outcomes = [Outcome() for _ in work]
        if not bool(hidden.isfinite().all() & logits.isfinite().all()):
            self._blame(batch, outcomes, hidden, by_request)
        for i, logits_TV in by_request.items():
            self._choose(work[i].live, outcomes[i], logits_TV)
        if self.drafter is not None:
            self.drafter.follow(batch, outcomes, hidden)
            self._blame_drafter(batch, outcomes)
        for i, one in enumerate(work):
            if one.live.wishes.prompt_logprobs:
                self._keep_prompt_logprobs(one, batch.parts[i], hidden[batch.rows(i)])
        return outcomes

    def _batch(self, work: Sequence[Work]) -> Batch:
        if self.drafter is None:
            return Batch.of(work, self.model.device)
        self.drafter.draft(work)
        return Batch.of(work, self.model.device, self.drafter.most)

    def _choose(self, live: LiveRequest, outcome: Outcome, logits_TV: torch.Tensor) -> None:
        """The model's own tokens, as far as the drafts before them are its own too."""
        own = logits_TV.argmax(-1).tolist()
        outcome.next_tokens = tuple(own[: common_prefix(live.drafts, own) + 1])
        if self.drafter is not None:
            outcome.near_ties = tuple(near_ties(logits_TV, self.model.dtype))

    def _sharing(self, batch: Batch) -> Sharing:
        sources = [one.live.sources for one in batch.work]
        usual = self.cache.pattern.sources()
        if all(own == usual for own in sources):
            return GroupSharing(usual, self.buffer)
        return OwnSharing(sources, batch.step.request_T)

    def _keep_prompt_logprobs(self, one: Work, part: Part, hidden_Td: torch.Tensor) -> None:
        targets = one.live.request.prompt[part.start + 1 : part.stop + 1]
        if targets:
            wanted = torch.tensor(targets, device=hidden_Td.device)
            found = token_logprobs(self.model, hidden_Td[: len(targets)], wanted)
            positions = range(part.start + 1, part.start + 1 + len(targets))
            one.live.prompt_logprobs.update(zip(positions, found.tolist(), strict=True))

    def _blame(
        self,
        batch: Batch,
        outcomes: list[Outcome],
        hidden_Td: torch.Tensor,
        logits: dict[int, torch.Tensor],
    ) -> None:
        """Give an error to the requests whose own rows are not finite, and to no others."""
        bad = set(batch.step.request_T[~hidden_Td.isfinite().all(-1)].tolist())
        bad |= {i for i, rows_TV in logits.items() if not rows_TV.isfinite().all()}
        sharing = self._sharing(batch)
        places = first_bad_places(self.model, batch.tokens_T, self.cache, batch.step, sharing)
        for i in bad:
            place = places.get(i, BEHIND_THE_LAYERS)
            outcomes[i].error = self._not_finite(batch, i, f"first in {place}")

    def _blame_drafter(self, batch: Batch, outcomes: list[Outcome]) -> None:
        """What the MTP layer cannot draft from must not stay in the cache for others."""
        where = f"in the MTP layer (layer {self.model.config.num_hidden_layers})"
        for i, (one, outcome) in enumerate(zip(batch.work, outcomes, strict=True)):
            if one.live in self.drafter.broken and outcome.error is None:
                outcome.error = self._not_finite(batch, i, where)

    def _not_finite(self, batch: Batch, i: int, where: str) -> NotFiniteError:
        number, part = batch.work[i].live.number, batch.parts[i]
        return NotFiniteError(
            f"request {number}: NaN or infinity, {where}, among tokens {part.start} to"
            f" {part.stop - 1}: {likely_cause(self.model.dtype)}"
        )
