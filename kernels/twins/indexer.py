"""The lightning indexer's query and key."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ixsearch.kernels.twins.fp8 import index_scales, to_fp8
from ixsearch.kernels.twins.hadamard import rotate_by_hadamard
from ixsearch.kernels.twins.key_pages import write_keys
from ixsearch.kernels.twins.rope import rope


def indexer_query(
    q_TND: torch.Tensor,
    weights_TN: torch.Tensor,
    cos_TP: torch.Tensor,
    sin_TP: torch.Tensor,
    layout: str,
    scale: float,
    quantise: bool = False,
    hadamard: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotate the query and fold all scales into the head weights.

    Args:
        q_TND: the projected query; its first 2P dims are rotated.
        weights_TN: the raw head weights.
        cos_TP, sin_TP: angles, P = half of the rotated dims.
        scale: the softmax scale, D^-0.5.
        quantise: give the query as e4m3, with one power-of-two scale a token and head.
        hadamard: after RoPE, rotate the whole head vector by D^-0.5 H_D. Keys must have it too.

    Returns:
        the rotated query [T, N, D] and float32 weights [T, N] times scale, N^-0.5 and the query's
        own scales. A positive scale commutes with the ReLU of the score, so it may go on the
        weights.

    Raises:
        ValueError: an unknown layout, or `hadamard` where D is no power of two.
    """
    heads = q_TND.shape[1]
    q = q_TND.float() if quantise else q_TND.to(cos_TP.dtype)
    q = _rotate_front(q, cos_TP[:, None], sin_TP[:, None], layout)
    if hadamard:
        q = rotate_by_hadamard(q)
    weights_TN = weights_TN.float() * (scale * heads**-0.5)
    if not quantise:
        return q.to(q_TND.dtype), weights_TN
    scales_TN1 = index_scales(q.abs().amax(-1, keepdim=True))
    return to_fp8(q, scales_TN1), weights_TN * scales_TN1[..., 0]


def indexer_key_store(
    k_TD: torch.Tensor,
    norm_weight: torch.Tensor,
    norm_bias: torch.Tensor,
    eps: float,
    cos_TP: torch.Tensor,
    sin_TP: torch.Tensor,
    layout: str,
    cache: torch.Tensor,
    slots_T: torch.Tensor,
    hadamard: bool = False,
) -> None:
    """LayerNorm and rotate the indexer keys, then write them to the paged cache.

    Args:
        k_TD: the projected keys.
        cache: float [blocks, block size, D] or fp8 pages (`key_pages`), written in place.
        slots_T: slot of each token, block x block size + offset; negative ones are skipped.
        hadamard: as of `indexer_query`.
    """
    k = F.layer_norm(k_TD.float(), k_TD.shape[-1:], norm_weight.float(), norm_bias.float(), eps)
    k = _rotate_front(k, cos_TP, sin_TP, layout)
    if hadamard:
        k = rotate_by_hadamard(k)
    write_keys(k, cache, slots_T)


def _rotate_front(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, layout: str
) -> torch.Tensor:
    rotated = 2 * cos.shape[-1]
    return torch.cat((rope(x[..., :rotated], cos, sin, layout), x[..., rotated:]), -1)
