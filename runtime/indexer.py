"""The lightning indexer of an F layer: which tokens each query attends to.

Letters as in `ixsearch.kernels`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ixsearch import kernels
from ixsearch.runtime.cache import BLOCK_SIZE
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.sizes import score_rows
from ixsearch.runtime.source import Source
from ixsearch.runtime.step import Step

K_NORM_EPS = 1e-6


@dataclass(frozen=True)
class TopK:
    """The indices an F layer found, for itself and for the S layers of its index group."""

    source: int
    """The F layer."""
    logical_TK: torch.Tensor
    """int32 positions within the request, ascending, -1 padded."""
    slots_TK: torch.Tensor
    """The same as slots of the paged cache."""
    counts_T: torch.Tensor
    """Valid ones a token."""

    def where(self, rows_T: torch.Tensor, other: TopK) -> TopK:
        """These in the rows of the mask, `other`'s elsewhere."""
        return TopK(
            self.source,
            torch.where(rows_T[:, None], self.logical_TK, other.logical_TK),
            torch.where(rows_T[:, None], self.slots_TK, other.slots_TK),
            torch.where(rows_T, self.counts_T, other.counts_T),
        )


class Indexer:
    """I[t, s] = sum_n w[t, n] relu(q[t, n] . k[s]); the `index_topk` best s <= t are selected."""

    def __init__(self, config: DsaConfig, layer: int, weights: Source) -> None:
        self.config = config
        self.layer = layer
        self.wq_b = weights.linear("self_attn.indexer.wq_b")
        self.wk = weights.linear("self_attn.indexer.wk")
        self.k_norm_weight = weights.tensor("self_attn.indexer.k_norm.weight")
        self.k_norm_bias = weights.tensor("self_attn.indexer.k_norm.bias")
        self.weights_proj = weights.linear("self_attn.indexer.weights_proj")

    def __call__(
        self,
        hidden_Td: torch.Tensor,
        q_latent_TL: torch.Tensor,
        angles: tuple[torch.Tensor, torch.Tensor],
        keys: torch.Tensor,
        step: Step,
    ) -> TopK:
        """Write this step's keys, score all cached ones, select.

        Args:
            hidden_Td: after the layer's input norm.
            q_latent_TL: the normed query latent, shared with MLA.
            angles: cos and sin, as MLA has them.
            keys: the layer's indexer key cache; to an fp8 one the query comes in fp8.
        """
        c = self.config
        query = self.wq_b(q_latent_TL).view(-1, c.index_n_heads, c.index_head_dim)
        q, weights = kernels.indexer_query(
            query,
            self.weights_proj(hidden_Td),
            *angles,
            c.index_rope_layout,
            c.index_head_dim**-0.5,
            quantise=keys.dtype == torch.uint8,
        )
        kernels.indexer_key_store(
            self.wk(hidden_Td),
            self.k_norm_weight,
            self.k_norm_bias,
            K_NORM_EPS,
            *angles,
            c.index_rope_layout,
            keys,
            step.slots_T,
        )
        return self._select(q, weights, keys, step)

    def _select(
        self, q: torch.Tensor, weights: torch.Tensor, keys: torch.Tensor, step: Step
    ) -> TopK:
        decode, prefill = slice(step.decode_rows), slice(step.decode_rows, None)
        found: list[torch.Tensor] = []
        if step.decode_rows:
            scores = self._decode_scores(q[decode], weights[decode], keys, step)
            found.append(self._topk(scores, step.positions_T[decode] + 1))
        if step.decode_rows < step.rows:
            found += self._prefill_topk(q[prefill], weights[prefill], keys, step)
        logical = found[0] if len(found) == 1 else torch.cat(found)
        slots, counts = kernels.physical_indices(
            logical, step.request_T, step.block_table_BM, BLOCK_SIZE
        )
        return TopK(self.layer, logical, slots, counts)

    def _decode_scores(
        self, q: torch.Tensor, weights: torch.Tensor, keys: torch.Tensor, step: Step
    ) -> torch.Tensor:
        seen = step.positions_T[: step.decode_rows] + 1
        table, width = step.decode_table_DM, step.decode_furthest + 1
        return kernels.index_scores_paged(q, weights, keys, table, seen, width=width)

    def _prefill_topk(
        self, q: torch.Tensor, weights: torch.Tensor, keys: torch.Tensor, step: Step
    ) -> Iterator[torch.Tensor]:
        """Some rows at a time: the scores of all would grow with the square of a prompt."""
        gathered, scales = kernels.gather_indexer_keys(
            keys, step.prefill_table_PM, step.prefill_lens_P, total=step.prefill_keys
        )
        start = step.key_start_T
        lengths = step.positions_T[step.decode_rows :] + 1
        width = step.prefill_furthest + 1
        at_once = score_rows(width)
        for first in range(0, len(q), at_once):
            rows = slice(first, first + at_once)
            end = start[rows] + lengths[rows]
            found = kernels.index_scores_ragged(
                q[rows], weights[rows], gathered, start[rows], end, scales, width=width
            )
            yield self._topk(found, lengths[rows])

    def _topk(self, scores: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return kernels.topk_indices(scores, lengths, self.config.index_topk)
