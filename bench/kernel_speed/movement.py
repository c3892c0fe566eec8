"""Cases of slots and gathers."""

from __future__ import annotations

from functools import partial

import torch

from ixsearch import kernels
from ixsearch.kernels.twins import paging as twins
from ixsearch.kernels.twins.latent import latent_store
from kernel_speed import inputs
from kernel_speed.case import Setup
from kernel_speed.gate import same_bits
from kernel_speed.timing import Contender


def slots(tokens: int, context: int) -> Setup:
    """Top-k indices of tokens, each of a request of its own where they are few."""
    requests = tokens if tokens < inputs.CHUNK else 1
    table = inputs.block_table(requests, context)
    request = torch.arange(tokens, device=inputs.DEVICE) % requests
    shape = tokens, inputs.K
    logical = torch.randint(0, context, shape, dtype=torch.int32, device=inputs.DEVICE)
    logical[:, -1] = -1
    step = logical, request, table, inputs.PAGE

    def check(got: tuple[torch.Tensor, torch.Tensor]) -> str:
        return same_bits(*zip(got, twins.physical_indices(*step), strict=True))

    return Setup(Contender(partial(kernels.physical_indices, *step), check))


def keys(context: int) -> Setup:
    """All keys of a prompt, in their order."""
    cache = inputs.key_cache(context)
    step = cache, inputs.block_table(1, context), _one(context)

    def check(got: tuple[torch.Tensor, torch.Tensor]) -> str:
        return same_bits(*zip(got, twins.gather_indexer_keys(*step), strict=True))

    return Setup(Contender(partial(kernels.gather_indexer_keys, *step, total=context), check))


def latents(context: int) -> Setup:
    """All latents of a prompt, from `fp8_ds_mla` to bfloat16."""
    cache = inputs.latent_cache(context)
    kpe = inputs.randn(context, inputs.ROPE)
    every = torch.arange(context, device=inputs.DEVICE)
    latent_store(inputs.randn(context, inputs.LATENT), kpe, cache, every)
    step = cache, inputs.block_table(1, context), _one(context), inputs.LATENT

    def check(got: torch.Tensor) -> str:
        return same_bits((got, twins.gather_latent(*step)))

    return Setup(Contender(partial(kernels.gather_latent, *step, total=context), check))


def _one(context: int) -> torch.Tensor:
    return torch.tensor([context], device=inputs.DEVICE)
