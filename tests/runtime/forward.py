"""Plain forwards over a model, for tests."""

import torch

from ixsearch.runtime.cache import PagedCache, blocks_for
from ixsearch.runtime.step import Step


def poisoned_cache(model, pattern, length, mtp=False):
    """A cache full of NaN: whatever reads what was not written shows."""
    blocks = blocks_for(length)
    cache = PagedCache(model.config, pattern, blocks + 1, model.cache_format, model.device, mtp)
    poison(cache)
    # Block 0 stays poisoned: nothing may read it, not even for padding.
    return cache, list(range(1, blocks + 1))


def poison(cache):
    for layer in [*cache.layers, *filter(None, [cache.mtp])]:
        layer.poison()


@torch.inference_mode()
def full_forward(model, pattern, tokens, chunk=None):
    """Logits [T, vocabulary] and the top-k of each layer, by prefill in chunks."""
    cache, table = poisoned_cache(model, pattern, len(tokens))
    chunk = chunk or len(tokens)
    logits, carried_by_layer = [], []
    for start in range(0, len(tokens), chunk):
        part = torch.tensor(tokens[start : start + chunk], device=model.device)
        step = Step.prefill(table[: blocks_for(start + len(part))], start, len(part), model.device)
        x, carried = model.embed(part), None
        seen = []
        for layer, layer_cache in enumerate(cache.layers):
            x, carried = model.run_layer(
                layer, x, pattern.is_full(layer), carried, layer_cache, step
            )
            seen.append(carried)
        logits.append(model.logits(model.final_norm(x)))
        carried_by_layer.append(seen)
    return torch.cat(logits), carried_by_layer


@torch.inference_mode()
def mtp_forward(model, pattern, tokens, chunk=None):
    """Logits of the model and of its MTP layer, both [T - 1, vocabulary], by prefill in chunks.

    Row p of the MTP layer goes by token p + 1, which the last position does not have.
    """
    cache, table = poisoned_cache(model, pattern, len(tokens), mtp=True)
    chunk = chunk or len(tokens)
    logits, drafts = [], []
    for start in range(0, len(tokens) - 1, chunk):
        stop = min(start + chunk, len(tokens) - 1)
        step = Step.prefill(table[: blocks_for(stop)], start, stop - start, model.device)
        hidden = model.forward(torch.tensor(tokens[start:stop]), cache, step)
        following = torch.tensor(tokens[start + 1 : stop + 1])
        y = model.mtp(following, hidden, cache.mtp, model.table, step)
        logits.append(model.logits(hidden))
        drafts.append(model.mtp.logits(y))
    return torch.cat(logits), torch.cat(drafts)
