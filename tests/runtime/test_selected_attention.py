"""Gradients of attention over selected tokens against finite differences and plain torch."""

import pytest
import torch

from ixsearch import kernels
from ixsearch.runtime import selected_attention
from ixsearch.runtime.selected_attention import SelectedAttention

LATENT = 5


def inputs(dtype, tokens=7, heads=3, rope=2, chosen=4):
    """A document: each token selects of those up to itself, -1 padded."""
    generator = torch.Generator().manual_seed(3)
    q = torch.randn(tokens, heads, LATENT + rope, generator=generator, dtype=dtype)
    kv = torch.randn(tokens, LATENT + rope, generator=generator, dtype=dtype)
    slots = torch.full((tokens, chosen), -1, dtype=torch.int32)
    for t in range(tokens):
        some = torch.randperm(t + 1, generator=generator)[:chosen].sort().values
        slots[t, : len(some)] = some.int()
    return q.requires_grad_(), kv.requires_grad_(), slots, (slots >= 0).sum(-1)


@pytest.mark.parametrize("chunk", [1, 150, 1 << 24])
def test_against_finite_differences(monkeypatch, chunk):
    monkeypatch.setitem(selected_attention.CHUNK_ELEMENTS, "cpu", chunk)
    q, kv, slots, counts = inputs(torch.float64)
    assert torch.autograd.gradcheck(
        lambda q, kv: SelectedAttention.apply(q, kv, slots, counts, 0.7, LATENT), (q, kv)
    )


def plain_attention(q, kv, slots, scale):
    """Over all tokens, with a mask."""
    allowed = torch.zeros(len(q), len(kv), dtype=torch.bool)
    for row, chosen in zip(allowed, slots, strict=True):
        row[chosen[chosen >= 0].long()] = True
    logits = torch.einsum("thc,sc->ths", q, kv) * scale
    weights = logits.masked_fill(~allowed[:, None], float("-inf")).softmax(-1)
    return weights @ kv[:, :LATENT]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_against_plain_attention(dtype):
    q, kv, slots, counts = inputs(dtype, tokens=30, chosen=6)
    wide = [t.detach().double().requires_grad_() for t in (q, kv)]
    toward = torch.randn(30, 3, LATENT, generator=torch.Generator().manual_seed(1)).to(dtype)
    got = SelectedAttention.apply(q, kv, slots, counts, 0.7, LATENT)
    want = plain_attention(*wide, slots, 0.7)
    off = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2}[dtype]
    near = dict(rtol=off, atol=off)
    torch.testing.assert_close(got.double(), want, **near)
    mine = torch.autograd.grad(got, (q, kv), toward)
    theirs = torch.autograd.grad(want, wide, toward.double())
    for a, b in zip(mine, theirs, strict=True):
        assert a.dtype == dtype
        torch.testing.assert_close(a.double() / b.abs().max(), b / b.abs().max(), **near)


def test_forward_is_the_kernel_to_the_bit():
    q, kv, slots, counts = inputs(torch.float32, tokens=30)
    want, _ = kernels.sparse_mla(q.detach(), kv.detach(), slots, counts, 0.7, LATENT)
    assert torch.equal(SelectedAttention.apply(q, kv, slots, counts, 0.7, LATENT), want)
