"""Sparse attention against dense attention under a mask."""

import pytest
import torch

from ixsearch.kernels import sparse_mla
from ixsearch.kernels.twins import chunks


def case(seed=0, tokens=9, heads=3, slots=30, k=7, latent=6, rope=4):
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(tokens, heads, latent + rope, generator=generator)
    cache = torch.randn(slots // 5, 5, latent + rope, generator=generator)
    chosen = torch.stack([torch.randperm(slots, generator=generator)[:k] for _ in range(tokens)])
    holes = torch.rand(tokens, k, generator=generator) < 0.4
    holes[0], holes[1] = False, True
    chosen = torch.where(holes, -1, chosen).to(torch.int32)
    return q, cache, chosen, latent


@pytest.mark.parametrize("workspace", [1 << 24, 200])
def test_matches_masked_dense_attention(monkeypatch, workspace):
    monkeypatch.setitem(chunks.WORKSPACE_ELEMENTS, "cpu", workspace)
    q, cache, slots, latent = case()
    rows = cache.view(-1, cache.shape[-1])
    out, lse = sparse_mla(q, cache, slots, (slots >= 0).sum(-1), 0.3, latent)
    mask = torch.zeros(len(q), len(rows), dtype=torch.bool)
    for t, row in enumerate(slots.tolist()):
        mask[t, [s for s in row if s >= 0]] = True
    logits = torch.einsum("thc,sc->ths", q, rows) * 0.3
    logits = logits.masked_fill(~mask[:, None], float("-inf"))
    want = torch.einsum("ths,sr->thr", logits.softmax(-1), rows[:, :latent])
    some = mask.any(-1)
    torch.testing.assert_close(out[some], want[some])
    torch.testing.assert_close(lse[some], logits.logsumexp(-1)[some])
    assert not out[~some].any() and torch.isneginf(lse[~some]).all() and (~some).sum() == 1


def test_padding_never_reads_the_cache():
    q, cache, slots, latent = case()
    want, _ = sparse_mla(q, cache, slots, (slots >= 0).sum(-1), 0.3, latent)
    used = slots[slots >= 0].unique().long()
    poisoned = torch.full_like(cache.view(-1, cache.shape[-1]), 1e30)
    poisoned[used] = cache.view(-1, cache.shape[-1])[used]
    got, _ = sparse_mla(q, poisoned.view_as(cache), slots, (slots >= 0).sum(-1), 0.3, latent)
    assert torch.equal(got, want)


def test_a_poisoned_row_that_is_used_shows():
    q, cache, slots, latent = case()
    cache.view(-1, cache.shape[-1])[int(slots[0, 0])] = float("nan")
    out, _ = sparse_mla(q, cache, slots, (slots >= 0).sum(-1), 0.3, latent)
    assert out[0].isnan().all()


def test_padding_is_not_touched_by_what_others_left_in_the_cache():
    """0 x NaN is NaN: a padded entry must not read slot 0, or any slot of another request."""
    q, cache, slots, latent = case()
    slots[slots == 0] = -1
    counts = (slots >= 0).sum(-1)
    want, _ = sparse_mla(q, cache, slots, counts, 0.3, latent)
    rows = cache.view(30, -1)
    rows[sorted(set(range(30)) - set(slots.flatten().tolist()))] = float("nan")
    assert rows[0].isnan().all()
    got, _ = sparse_mla(q, cache, slots, counts, 0.3, latent)
    torch.testing.assert_close(got, want)
