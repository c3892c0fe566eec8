"""The operations of a DSA model, one function each. Knows no model, imports nothing of ours.

Letters: T tokens of the step, flattened over requests; H attention heads; N index heads; D index
head dim; R latent; P rope dim; K `index_topk`; S cached tokens; B requests; M blocks a request;
G groups of 128 dims, each with its own fp8 scale.

Caches are float or fp8 (uint8). An operation sees by the dtype which one it has: the layouts are
those of `twins/key_pages.py` and `twins/latent.py`.
"""

from ixsearch.kernels.twins.indexer import indexer_key_store, indexer_query
from ixsearch.kernels.twins.key_pages import fp8_key_bytes
from ixsearch.kernels.twins.latent import fp8_latent_bytes, latent_store
from ixsearch.kernels.twins.paging import (
    gather_indexer_keys,
    gather_latent,
    physical_indices,
    token_slots,
)
from ixsearch.kernels.twins.rope import rope
from ixsearch.kernels.twins.scores import index_scores_paged, index_scores_ragged
from ixsearch.kernels.twins.sparse_mla import sparse_mla
from ixsearch.kernels.twins.topk import topk_indices

__all__ = [
    "fp8_key_bytes",
    "fp8_latent_bytes",
    "gather_indexer_keys",
    "gather_latent",
    "index_scores_paged",
    "index_scores_ragged",
    "indexer_key_store",
    "indexer_query",
    "latent_store",
    "physical_indices",
    "rope",
    "sparse_mla",
    "token_slots",
    "topk_indices",
]
