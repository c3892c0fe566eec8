"""What one layer's use of another's indices does to the output, to first order.

With o_j what the heads of layer j read in the all-F forward (before the value projection),
D_ij = o_j(indices of layer i) - o_j(own indices) and g_j the gradient of sum_t v_t . logits_t at
o_j, where v_t has mean 0 and covariance diag(p_t) - p_t p_t^T (p_t: all-F's next-token
probabilities), the effect of layer j reading layer i is e_ij = g_j . D_ij. The second-order
expansion of a pattern's divergence is then 1/2 E_v[(sum over S layers j of e_(source of j) j)^2].

Of a document with more than `MOST_SCORED` scored positions, v is drawn for so many of them, without
replacement, and is larger by the root of the ratio: the expectation of every product of two effects
stays the same.

Letters: V draws of v; L layers; others as in `ixsearch.kernels`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import methodcaller

import numpy as np
import torch

from ixsearch import kernels
from ixsearch.runtime.attention import Projected
from ixsearch.runtime.baseline_forward import BaselineForward
from ixsearch.runtime.crew import AT_ONCE, Crew, crew_size
from ixsearch.runtime.indexer import TopK
from ixsearch.runtime.interface import Document, PairEffects, Progress
from ixsearch.runtime.model import DecoderLayer, DsaModel
from ixsearch.runtime.norm import rms_norm
from ixsearch.runtime.selected_attention import SelectedAttention
from ixsearch.runtime.sizes import state_bytes
from ixsearch.runtime.step import Step
from ixsearch.runtime.work import attention_share

LOGIT_ELEMENTS = 1 << 22
TOGETHER_BYTES = 1 << 28
"""Documents go back side by side as long as what the baseline's forward keeps of them, for every
layer, fits in this."""
MOST_SCORED = 4096
"""Scored positions of a document whose logits are made, and for which v is drawn."""


def effects_of(
    model: DsaModel,
    documents: Sequence[Document],
    draws: int,
    seed: int,
    progress: Progress | None = None,
    at_once: int = AT_ONCE,
) -> tuple[PairEffects, int]:
    """Effects of the documents, and their cost in layer-tokens. Draws are in their order.

    `at_once`: documents side by side, at the most; the last bits hang on how many there are.
    """
    generator = torch.Generator().manual_seed(seed)
    layers, topk = model.config.num_hidden_layers, model.config.index_topk
    tokens = tuple(len(document.scored_targets(topk)) for document in documents)
    effects = np.zeros((len(documents), draws, layers, layers), dtype=np.float32)
    seeing = [number for number, scored in enumerate(tokens) if scored]
    done = 0
    for group in _groups(model, documents, seeing, at_once):
        ways = [_WayBack(model, documents[number], draws, generator) for number in group]
        with Crew(model.device, len(group)) as crew:
            for j in reversed(range(1, layers)):
                crew.map(methodcaller("through", j), ways)
                if progress is not None:
                    progress((done + len(group) * (layers - j) / layers) / len(seeing))
        for number, way in zip(group, ways, strict=True):
            effects[number] = way.effects.numpy()
        done += len(group)
    if progress is not None:
        progress(1.0)
    cost = sum(_cost(model, len(documents[number].tokens), draws) for number in seeing)
    return PairEffects(effects, tokens), round(cost)


def _groups(
    model: DsaModel, documents: Sequence[Document], numbers: Sequence[int], at_once: int
) -> Iterator[list[int]]:
    """Documents that go back side by side: what the baseline left of them is alive at once."""
    c, most = model.config, crew_size(model.device, at_once)
    token = c.num_hidden_layers * state_bytes(c.hidden_size, c.index_topk, model.dtype.itemsize)
    group: list[int] = []
    for number in numbers:
        together = [*group, number]
        size = token * sum(len(documents[other].tokens) for other in together)
        if group and (len(group) == most or size > TOGETHER_BYTES):
            yield group
            together = [number]
        group = together
    if group:
        yield group


def _cost(model: DsaModel, tokens: int, draws: int) -> float:
    """Layer-tokens of a document: its forward; all layers but the first once more, and two forwards
    for each draw; the attention of each pair, by the share of a layer that its products have.
    """
    layers = model.config.num_hidden_layers
    pairs = sum(i < j for j in range(layers) for i in model.indexer_layers)
    seeing = max(0, tokens - model.config.index_topk)
    whole = tokens * (layers + (layers - 1) * (1 + 2 * draws))
    return whole + seeing * pairs * attention_share(model.config)


class _WayBack:
    """One document's way from the top down through the layers, which finds its effects.

    Layers without an indexer read their source of the all-F forward; their effects are relative to
    that. Entries that no pattern can have are 0.

    Only one layer's graph is alive at a time: each is computed again on the way back.
    """

    def __init__(
        self, model: DsaModel, document: Document, draws: int, generator: torch.Generator
    ) -> None:
        self._model = model
        self._found = BaselineForward.of(model, document)
        self._gradients = _top_gradients(model, document, self._found.last, draws, generator)
        layers = model.config.num_hidden_layers
        self.effects = torch.zeros(draws, layers, layers, dtype=torch.float64)
        """float64 [V, L, L] on the CPU: of layer j (last dim) reading layer i < j."""

    def through(self, j: int) -> None:
        """Layer j, after all later ones."""
        model, topks = self._model, self._found.topks
        self._gradients, by_heads, layer_p, own = _back(model, j, self._found, self._gradients)
        for i in (i for i in model.indexer_layers if i < j):
            self.effects[:, i, j] = _effect(model, layer_p, own, topks[i], by_heads)


def _top_gradients(
    model: DsaModel,
    document: Document,
    last: torch.Tensor,
    draws: int,
    generator: torch.Generator,
) -> list[torch.Tensor]:
    """Gradients [T, d] of sum_t v_t . logits_t at the last hidden states, one for each draw."""
    rows, scale = _scored_rows(document, model.config.index_topk, generator)
    rows = rows.to(model.device)
    gradients = [torch.zeros_like(last) for _ in range(draws)]
    for part in rows.split(max(1, LOGIT_ELEMENTS // model.config.vocab_size)):
        x = last[part].requires_grad_()
        with torch.enable_grad():
            logits = model.logits(model.final_norm(x))
        p = logits.detach().double().softmax(-1)
        for gradient in gradients:
            v = (scale * draw(p, generator)).to(logits.dtype)
            (gradient[part],) = torch.autograd.grad(logits, x, v, retain_graph=True)
    return gradients


def _scored_rows(
    document: Document, index_topk: int, generator: torch.Generator
) -> tuple[torch.Tensor, float]:
    """Rows whose next token is scored, `MOST_SCORED` of them at most, and what v is scaled by."""
    rows = torch.tensor(document.scored_targets(index_topk)) - 1
    if len(rows) <= MOST_SCORED:
        return rows, 1.0
    chosen = torch.randperm(len(rows), generator=generator)[:MOST_SCORED]
    return rows[chosen.sort().values], (len(rows) / MOST_SCORED) ** 0.5


def draw(p: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Of each row of probabilities a v of mean 0 and covariance diag(p) - p p^T.

    As the one-hot of a sampled label less p has; but where the model is certain, labels are nearly
    always the same, and what they say of the cost hangs on the rare other one.
    """
    noise = torch.randn(p.shape, generator=generator, dtype=p.dtype).to(p.device)
    v = p.sqrt() * noise
    return v - p * v.sum(-1, keepdim=True)


def _back(
    model: DsaModel, number: int, found: BaselineForward, gradients: Sequence[torch.Tensor]
) -> tuple[list[torch.Tensor], list[torch.Tensor], Projected, torch.Tensor]:
    """Through one layer: each draw's gradients at its input and at what its heads read."""
    layer = model.layers[number]
    x = found.inputs[number].detach().requires_grad_()
    with torch.enable_grad():
        p, heads, out = _through(model, layer, x, found.topks[number], found.step)
    pairs = [
        torch.autograd.grad(out, (x, heads), gradient, retain_graph=True) for gradient in gradients
    ]
    detached = Projected(*(part.detach() for part in p[:-1]), p.angles)
    return [a for a, _ in pairs], [b for _, b in pairs], detached, heads.detach()


def _through(
    model: DsaModel, layer: DecoderLayer, x_Td: torch.Tensor, topk: TopK, step: Step
) -> tuple[Projected, torch.Tensor, torch.Tensor]:
    """The layer on what it selected, with a graph: projections, what the heads read, output."""
    c = model.config
    p = layer.attention.project(rms_norm(x_Td, layer.input_norm, layer.eps), model.table, step)
    kv_SC = torch.cat((p.ckv_TR, p.kpe_TP), -1)
    heads = SelectedAttention.apply(
        p.query_THC, kv_SC, topk.logical_TK, topk.counts_T, c.softmax_scale, c.kv_lora_rank
    )
    x_Td = x_Td + layer.attention.output(heads)
    return p, heads, x_Td + layer.mlp(rms_norm(x_Td, layer.mlp_norm, layer.eps))


@torch.no_grad()
def _effect(
    model: DsaModel,
    p: Projected,
    own_THR: torch.Tensor,
    topk: TopK,
    by_heads: Sequence[torch.Tensor],
) -> torch.Tensor:
    """g_j . D_ij, one for each draw. Up to `index_topk` tokens all select the same: D is 0."""
    c = model.config
    rows = slice(min(c.index_topk, len(own_THR)), None)
    kv_SC = torch.cat((p.ckv_TR, p.kpe_TP), -1)
    other_THR, _ = kernels.sparse_mla(
        p.query_THC[rows],
        kv_SC,
        topk.logical_TK[rows],
        topk.counts_T[rows],
        c.softmax_scale,
        c.kv_lora_rank,
    )
    change = (other_THR - own_THR[rows]).double()
    return torch.stack([(g[rows].double() * change).sum() for g in by_heads]).cpu()
