"""The operations of a DSA model, one function each. Knows no model, imports nothing of ours.

On CUDA an operation runs its Triton kernel (`gpu/`), elsewhere its torch twin (`twins/`), which
says what it means; `backend` forces either.

Letters: T tokens of the step, flattened over requests; H attention heads; N index heads; D index
head dim; R latent; P rope dim; K `index_topk`; S cached tokens; B requests; M blocks a request;
G groups of 128 dims, each with its own fp8 scale.

Caches are float or fp8 (uint8). An operation sees by the dtype which one it has: the layouts are
those of `twins/key_pages.py` and `twins/latent.py`.
"""

from ixsearch.kernels.dispatch import backend, forced, operation
from ixsearch.kernels.twins import indexer as _indexer
from ixsearch.kernels.twins import latent as _latent
from ixsearch.kernels.twins import paging as _paging
from ixsearch.kernels.twins import scores as _scores
from ixsearch.kernels.twins.key_pages import fp8_key_bytes
from ixsearch.kernels.twins.latent import fp8_latent_bytes
from ixsearch.kernels.twins.paging import token_slots
from ixsearch.kernels.twins.rope import rope as _rope
from ixsearch.kernels.twins.sparse_mla import sparse_mla as _sparse_mla
from ixsearch.kernels.twins.topk import topk_indices as _topk_indices

rope = operation(_rope, "rope")
indexer_query = operation(_indexer.indexer_query, "indexer_query")
indexer_key_store = operation(_indexer.indexer_key_store, "indexer_key_store")
index_scores_ragged = operation(_scores.index_scores_ragged, "scores_ragged")
index_scores_paged = operation(_scores.index_scores_paged, "scores_paged")
topk_indices = operation(_topk_indices, "topk")
physical_indices = operation(_paging.physical_indices, "physical_indices")
latent_store = operation(_latent.latent_store, "latent_store")
gather_latent = operation(_paging.gather_latent, "gather")
gather_indexer_keys = operation(_paging.gather_indexer_keys, "gather")
sparse_mla = operation(_sparse_mla, "sparse_mla")

__all__ = [
    "backend",
    "forced",
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
