"""What it costs that a layer reads another's indices, estimated without scoring any pattern.

From the effects e_ij of `Engine.pair_effects`: the cost of layer j reading layer i is
c_ij = 1/2 E[e_ij^2] a scored token, in nats. A pattern's cost is the sum over its S layers, or,
with what layers do to each other, 1/2 E[(sum of their e)^2].

Letters: N documents; V draws; L layers; P patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ixsearch.mix import Mix
from ixsearch.patterns import Pattern
from ixsearch.search.objective import log_divergence

CHUNK = 256
"""Patterns at once."""


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects on some documents, and what they say of patterns."""

    effects_NVLL: np.ndarray
    """[document, draw, source, layer]; 0 where a layer reads what the baseline reads."""
    tokens: tuple[int, ...]
    """Scored tokens of each document."""

    def weighted(self, mix: Mix) -> Effects:
        """So that costs, still over the tokens of all documents, are the mix's weighted means."""
        if mix.is_one:
            return self
        root_N = np.sqrt(mix.factors(self.tokens)).astype(self.effects_NVLL.dtype)
        return Effects(self.effects_NVLL * root_N[:, None, None, None], self.tokens)

    @cached_property
    def costs_LL(self) -> np.ndarray:
        """c_ij, nats a scored token."""
        return self._each_NLL.sum(0) / sum(self.tokens)

    @cached_property
    def stderr_LL(self) -> np.ndarray:
        """Standard error of `costs_LL`, from the documents' means; infinite for one document."""
        documents = len(self.tokens)
        if documents < 2:
            return np.full_like(self.costs_LL, np.inf)
        rest_NLL = self._each_NLL - self.costs_LL * np.array(self.tokens)[:, None, None]
        return rest_NLL.std(0, ddof=1) * documents**0.5 / sum(self.tokens)

    def additive(self, patterns: Sequence[Pattern]) -> np.ndarray:
        """[P]: the sum of the costs of what layers read."""
        sources_PL = _sources(patterns)
        return self.costs_LL[sources_PL, np.arange(sources_PL.shape[1])].sum(1)

    def joint(self, patterns: Sequence[Pattern]) -> np.ndarray:
        """[P]: the same with what layers do to each other."""
        sources_PL = _sources(patterns)
        layers = np.arange(sources_PL.shape[1])
        parts = [
            np.square(self.effects_NVLL[:, :, sources_PL[i : i + CHUNK], layers].sum(-1))
            for i in range(0, len(patterns), CHUNK)
        ]
        squares_NVP = np.concatenate(parts, -1)
        return 0.5 * squares_NVP.mean(1).sum(0) / sum(self.tokens)

    def guess(self, patterns: Sequence[Pattern]) -> np.ndarray:
        """[P]: the logarithm of the joint cost, where no surrogate is known yet."""
        return log_divergence(self.joint(patterns))

    @cached_property
    def _each_NLL(self) -> np.ndarray:
        return 0.5 * np.square(self.effects_NVLL.astype(np.float64)).mean(1)


def _sources(patterns: Sequence[Pattern]) -> np.ndarray:
    return np.array([p.sources() for p in patterns])
