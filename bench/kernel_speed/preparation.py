"""Cases of what is written before scores: queries, keys and latents of a step."""

from __future__ import annotations

from functools import partial

import torch

from ixsearch import kernels
from ixsearch.kernels.twins import indexer as twins
from ixsearch.kernels.twins.key_pages import exact_keys, read_keys
from ixsearch.kernels.twins.latent import latent_store
from kernel_speed import inputs
from kernel_speed.case import Setup
from kernel_speed.gate import keys_alike, same_bits
from kernel_speed.timing import Contender

LAYOUT = "half"
EPS = 1e-6
SLOTS = 1 << 17


def query_step(tokens: int) -> tuple:
    """Arguments of `indexer_query`: all that it can do, RoPE, Hadamard and e4m3."""
    q = inputs.randn(tokens, inputs.HEADS, inputs.DIMS, dtype=torch.bfloat16)
    weights = inputs.randn(tokens, inputs.HEADS, dtype=torch.bfloat16)
    return q, weights, *inputs.angles(tokens), LAYOUT, inputs.DIMS**-0.5, True, True


def key_step(tokens: int) -> tuple:
    """Arguments of `indexer_key_store` before the cache."""
    k = inputs.randn(tokens, inputs.DIMS, dtype=torch.bfloat16)
    norm = inputs.randn(inputs.DIMS), inputs.randn(inputs.DIMS)
    return k, *norm, EPS, *inputs.angles(tokens), LAYOUT


def query(tokens: int) -> Setup:
    step = query_step(tokens)

    def check(got: tuple[torch.Tensor, torch.Tensor]) -> str:
        return same_bits(*zip(got, twins.indexer_query(*step), strict=True))

    return Setup(Contender(partial(kernels.indexer_query, *step), check))


def key_store(tokens: int) -> Setup:
    step = key_step(tokens)
    cache = inputs.key_cache(SLOTS, filled=False)
    slots = inputs.slots_out_of_order(tokens, SLOTS)

    def check(_: None) -> str:
        want = torch.zeros_like(cache)
        twins.indexer_key_store(*step, want, slots, True)
        return keys_alike(*(exact_keys(*read_keys(c, slots)) for c in (cache, want)))

    return Setup(Contender(partial(kernels.indexer_key_store, *step, cache, slots, True), check))


def latents(tokens: int) -> Setup:
    ckv = inputs.randn(tokens, inputs.LATENT, dtype=torch.bfloat16)
    kpe = inputs.randn(tokens, inputs.ROPE, dtype=torch.bfloat16)
    cache = inputs.latent_cache(SLOTS)
    slots = inputs.slots_out_of_order(tokens, SLOTS)

    def check(_: None) -> str:
        want = torch.zeros_like(cache)
        latent_store(ckv, kpe, want, slots)
        return same_bits((cache, want))

    return Setup(Contender(partial(kernels.latent_store, ckv, kpe, cache, slots), check))
