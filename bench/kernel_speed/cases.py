"""All cases, at the shapes of the published figures of peers."""

from __future__ import annotations

from functools import partial

from kernel_speed import indexer, movement, preparation, scores, topk
from kernel_speed.case import Case
from kernel_speed.inputs import CHUNK

CONTEXTS = (8192, 32768, 131072)
LONGEST = CONTEXTS[-1]
REQUESTS = (1, 16, 64)


def cases(quick: bool = False) -> list[Case]:
    """`quick`: of several contexts the shortest."""
    contexts = CONTEXTS[:1] if quick else CONTEXTS
    total = CONTEXTS[0] if quick else LONGEST
    return [
        *(
            Case("index_scores_ragged", tokens(CHUNK), c, partial(scores.ragged, c))
            for c in contexts
        ),
        *_decode("index_scores_paged", scores.paged, contexts),
        *(Case("topk_indices", tokens(CHUNK), c, partial(topk.prefill, c)) for c in contexts),
        *_decode("topk_indices", topk.decode, contexts),
        Case("indexer_total", tokens(CHUNK), total, partial(indexer.total, total)),
        *_by_tokens("indexer_query", preparation.query, (CHUNK, 1)),
        *_by_tokens("indexer_key_store", preparation.key_store, (CHUNK, 1)),
        *_by_tokens("latent_store", preparation.latents, (CHUNK, 1)),
        *(
            Case("physical_indices", tokens(n), LONGEST, partial(movement.slots, n, LONGEST))
            for n in (CHUNK, 64)
        ),
        Case("gather_indexer_keys", tokens(LONGEST), None, partial(movement.keys, LONGEST)),
        Case("gather_latent", tokens(LONGEST), None, partial(movement.latents, LONGEST)),
    ]


def tokens(count: int) -> str:
    return f"{count:,} tokens" if count > 1 else "1 token"


def _decode(operation, setup, contexts) -> list[Case]:
    """One token of each request."""
    return [
        Case(operation, f"{'1 request' if n == 1 else f'{n} requests'}", c, partial(setup, n, c))
        for n in REQUESTS
        for c in contexts
    ]


def _by_tokens(operation, setup, counts) -> list[Case]:
    return [Case(operation, tokens(n), None, partial(setup, n)) for n in counts]
