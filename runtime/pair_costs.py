"""What it truly costs that one layer reads another's indices: measured, one pair at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.baseline_forward import BaselineForward
from ixsearch.runtime.compare import document_score, targets_of
from ixsearch.runtime.interface import Document, Progress
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.not_finite import NotFiniteError, likely_cause

Pair = tuple[int, int]
"""(source, layer that reads its indices)"""


def all_pairs(model: DsaModel) -> list[Pair]:
    """Those that a pattern can have and the baseline has not."""
    layers = model.config.num_hidden_layers
    own = Pattern.from_full(layers, model.indexer_layers).sources()
    return [(i, j) for j in range(layers) for i in model.indexer_layers if i < j and i != own[j]]


def pair_costs(
    model: DsaModel,
    documents: Sequence[Document],
    pairs: Sequence[Pair] | None = None,
    progress: Progress | None = None,
) -> tuple[np.ndarray, int]:
    """Costs [L, L] and what it took in layer-tokens.

    The cost [i, j] is the divergence a scored token, nats, when layer j alone reads what layer i
    selected in the baseline; behind it each layer selects by itself again, and one without an
    indexer that shares with j reads what it reads in the baseline. Of pairs that are not asked for
    it is NaN.

    Args:
        pairs: default all that a pattern can have.

    Raises:
        IxsearchError: no such pair, or no token is scored; NaN or infinity.
    """
    chosen = all_pairs(model) if pairs is None else _checked(model, pairs)
    layers, topk = model.config.num_hidden_layers, model.config.index_topk
    seeing = [document for document in documents if document.scored_targets(topk)]
    if not seeing:
        raise IxsearchError(
            f"no token is scored, all are predicted within the first {topk} (index_topk), where"
            " layers read the same: give longer documents"
        )
    sums, tokens, cost = np.full((layers, layers), np.nan), 0, 0
    for i, j in chosen:
        sums[i, j] = 0.0
    for number, document in enumerate(seeing):
        tokens += len(document.scored_targets(topk))
        for (i, j), divergence in zip(chosen, _of_document(model, document, chosen), strict=True):
            sums[i, j] += divergence
        cost += len(document.tokens) * (layers + sum(layers - j for _, j in chosen))
        if progress is not None:
            progress((number + 1) / len(seeing))
    return sums / tokens, cost


def _checked(model: DsaModel, pairs: Sequence[Pair]) -> list[Pair]:
    layers = model.config.num_hidden_layers
    for i, j in pairs:
        if i not in model.indexer_layers or not i < j < layers:
            raise IxsearchError(
                f"pair ({i}, {j}): layer {j} of {layers} cannot read indices of layer {i}: give a"
                " source that has an indexer and comes before the layer"
            )
    return list(dict.fromkeys(pairs))


@torch.inference_mode()
def _of_document(model: DsaModel, document: Document, pairs: Sequence[Pair]) -> list[float]:
    """Sums of the divergences over scored tokens."""
    found = BaselineForward.of(model, document)
    rows = torch.tensor(targets_of(document), device=model.device) - 1
    reference = model.final_norm(found.last)[rows]
    sums = []
    for i, j in pairs:
        hidden = model.final_norm(_with_pair(model, found, i, j))[rows]
        score = document_score(model, document, reference, hidden)
        if score is None:
            raise NotFiniteError(
                f"document {document.name}, layer {j} with the indices of layer {i}: NaN or"
                f" infinity: {likely_cause(model.dtype)}"
            )
        sums.append(score.divergence_sum)
    return sums


def _with_pair(model: DsaModel, found: BaselineForward, i: int, j: int) -> torch.Tensor:
    """The last hidden states [T, d], computed from layer j on."""
    x, _ = model.run_layer(j, found.inputs[j], False, found.topks[i], found.scratch, found.step)
    carried = found.topks[j]
    for layer in range(j + 1, model.config.num_hidden_layers):
        full = layer in model.indexer_layers
        x, carried = model.run_layer(layer, x, full, carried, found.scratch, found.step)
    return x
