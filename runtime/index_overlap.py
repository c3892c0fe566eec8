"""How alike the selections of layers are: what methods go by that compare indices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ixsearch.patterns import IxsearchError
from ixsearch.runtime.baseline_forward import BaselineForward
from ixsearch.runtime.indexer import TopK
from ixsearch.runtime.interface import Document
from ixsearch.runtime.model import DsaModel

MASK_ELEMENTS = 1 << 22


def index_overlap(model: DsaModel, documents: Sequence[Document]) -> tuple[np.ndarray, int]:
    """Mean share [L, L] of the indices of one layer that another has too, in the baseline, and what
    it took in layer-tokens.

    Over tokens past `index_topk`: up to there all select the same.

    Raises:
        IxsearchError: there is no such token.
    """
    topk = model.config.index_topk
    seeing = [document for document in documents if len(document.tokens) > topk]
    if not seeing:
        raise IxsearchError(
            f"no document is longer than index_topk, {topk} tokens: up to there all layers select"
            " the same; give longer documents"
        )
    common = sum(
        _common(BaselineForward.of(model, document).topks, topk, len(document.tokens))
        for document in seeing
    )
    tokens = sum(len(document.tokens) for document in seeing)
    share = common / (topk * (tokens - topk * len(seeing)))
    return share, tokens * model.config.num_hidden_layers


def _common(topks: Sequence[TopK], first: int, length: int) -> np.ndarray:
    """Indices [L, L] that two layers share, counted over tokens from `first` on."""
    total = torch.zeros(len(topks), len(topks), dtype=torch.float64)
    step = max(1, MASK_ELEMENTS // (len(topks) * length))
    for start in range(first, length, step):
        rows = slice(start, min(start + step, length))
        chosen_LTK = torch.stack([topk.logical_TK[rows] for topk in topks]).long()
        mask_LTS = torch.zeros(*chosen_LTK.shape[:2], length, device=chosen_LTK.device)
        mask_LS = mask_LTS.scatter_(2, chosen_LTK, 1.0).flatten(1)
        total += (mask_LS @ mask_LS.T).double().cpu()
    return total.numpy()
