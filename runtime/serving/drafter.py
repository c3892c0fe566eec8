"""Drafts for the decoding requests of a step, by the model's MTP layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from ixsearch.runtime.cache import LayerCache
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.serving.request import LiveRequest
from ixsearch.runtime.serving.scheduler import Work
from ixsearch.runtime.step import Part, Step

if TYPE_CHECKING:  # the runner holds a drafter
    from ixsearch.runtime.serving.runner import Batch, Outcome


class Drafter:
    """Runs the MTP layer over the rows that the model has confirmed, and on from there.

    Row p of the layer goes by token p + 1: it runs as soon as that is known, at the end of the step
    that runs token p. What a rejected draft leaves in a cache stands behind the request's tokens;
    each position is written by the forward that brings its token, before it is read.

    Args:
        cache: the layer's own, with the slots of the model's.
        most: drafts a request and step.
    """

    def __init__(self, model: DsaModel, cache: LayerCache, most: int) -> None:
        self.most = most
        self.broken: set[LiveRequest] = set()
        """Those of the step for which the layer computed NaN or infinity."""
        self._model = model
        self._cache = cache

    def draft(self, work: Sequence[Work]) -> None:
        """Give each request its drafts, as many as its work has room for, none past a stop token.

        The first says what the layer gave at the last row; each later one goes on from the layer's
        own output. The slots of these rows are written anew by `follow`.
        """
        self.broken = set()
        for one in work:
            one.live.drafts = []
        drafting = [one for one in work if one.drafts]
        states = [one.live.draft_state for one in drafting]
        while drafting:
            logits_BV = self._model.mtp.logits(torch.stack(states))
            self._look_for_broken(drafting, logits_BV, [1] * len(drafting))
            for one, token in zip(drafting, logits_BV.argmax(-1).tolist(), strict=True):
                one.live.drafts.append(token)
            pairs = [(o, y) for o, y in zip(drafting, states, strict=True) if self._wants_more(o)]
            drafting = [one for one, _ in pairs]
            states = self._go_on(drafting, [y for _, y in pairs]) if pairs else []

    def follow(self, batch: Batch, outcomes: Sequence[Outcome], hidden_Td: torch.Tensor) -> None:
        """Run the layer over a step's rows, but for those of rejected drafts.

        Args:
            hidden_Td: the model's, normed, of all rows of the step.
        """
        parts, rows, following, first = [], [], [], 0
        for one, part, outcome in zip(batch.work, batch.parts, outcomes, strict=True):
            known = one.live.tokens[part.start + 1 : part.start + one.count + 1]
            after = [*known, *outcome.next_tokens]
            parts.append(Part(part.table, part.start, len(after)))
            rows += range(first, first + len(after))
            following += after
            first += part.count
        y_Td = self._run(following, hidden_Td[rows], parts)
        self._look_for_broken(batch.work, y_Td, [part.count for part in parts])
        last = torch.tensor([part.count for part in parts]).cumsum(0) - 1
        for one, y_d in zip(batch.work, y_Td[last.to(y_Td.device)], strict=True):
            one.live.draft_state = y_d if one.ends else None

    def _go_on(self, drafting: list[Work], states: list[torch.Tensor]) -> list[torch.Tensor]:
        lives = [one.live for one in drafting]
        parts = [Part(live.table, live.computed + len(live.drafts) - 1, 1) for live in lives]
        y_Bd = self._run([live.drafts[-1] for live in lives], torch.stack(states), parts)
        return list(y_Bd)

    def _look_for_broken(
        self, work: Sequence[Work], values: torch.Tensor, counts: Sequence[int]
    ) -> None:
        """`counts`: the rows of `values` that each request has."""
        finite = values.isfinite().all(-1).cpu().split(list(counts))
        for one, rows in zip(work, finite, strict=True):
            if not rows.all():
                self.broken.add(one.live)

    def _wants_more(self, one: Work) -> bool:
        """Nothing is written past a stop token."""
        live = one.live
        ended = live in self.broken or live.drafts[-1] in live.request.stop_tokens
        return len(live.drafts) < one.drafts and not ended

    def _run(
        self, following: list[int], hidden_Td: torch.Tensor, parts: Sequence[Part]
    ) -> torch.Tensor:
        model = self._model
        step = Step.of(parts, model.device, decode_width=1 + self.most)
        tokens = torch.tensor(following, device=model.device)
        return model.mtp(tokens, hidden_Td, self._cache, model.table, step)
