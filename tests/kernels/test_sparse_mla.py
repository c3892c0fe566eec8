"""Sparse attention against dense attention under a mask."""

import pytest
import torch

from ixsearch import kernels
from ixsearch.kernels import sparse_mla
from ixsearch.kernels.twins import chunks, latent

from .draws import here, randint, randn, randperm

pytestmark = pytest.mark.usefixtures("pair")

SHAPES = [
    dict(tokens=9, heads=3, slots=30, k=7, latent=6, rope=4),
    dict(tokens=3, heads=3, slots=120, k=100, latent=24, rope=8),  # few tokens: their slots split
    dict(tokens=1, heads=17, slots=60, k=50, latent=130, rope=2),
    dict(tokens=6, heads=33, slots=40, k=20, latent=16, rope=0),
]


def case(tokens=9, heads=3, slots=30, k=7, latent=6, rope=4, seed=0):
    """Tokens 0, 4, ..: all places taken; 1: none; 2: those at the front; 3: some, anywhere."""
    q = randn(tokens, heads, latent + rope, seed=seed)
    cache = randn(slots // 5, 5, latent + rope, seed=seed + 1)
    chosen = torch.stack([randperm(slots, 100 * seed + t)[:k] for t in range(tokens)])
    holes = randint(0, 10, (tokens, k), seed=seed) < 4
    holes[0::4], holes[1::4] = False, True
    holes[2::4] = torch.arange(k) >= max(1, k // 8)
    return q, cache, torch.where(holes, -1, chosen).to(torch.int32), latent


def dense(q, rows, slots, scale, latent):
    """In float64, over all rows under a mask: (out, log-sum-exp, has the token any slot)."""
    mask = torch.zeros(len(q), len(rows), dtype=torch.bool)
    for t, row in enumerate(slots.tolist()):
        mask[t, [s for s in row if s >= 0]] = True
    logits = torch.einsum("thc,sc->ths", q.double(), rows.double()) * scale
    logits = logits.masked_fill(~mask[:, None], float("-inf"))
    out = torch.einsum("ths,sr->thr", logits.softmax(-1), rows[:, :latent].double())
    return out, logits.logsumexp(-1), mask.any(-1)


def counted(slots):
    return (slots >= 0).sum(-1, dtype=torch.int32)


def used_rows(cache, slots, poison):
    """The cache with `poison` in all rows that no slot names."""
    rows = torch.full_like(cache.view(-1, cache.shape[-1]), poison)
    used = slots[slots >= 0].unique().long()
    rows[used] = cache.view(-1, cache.shape[-1])[used]
    return rows.view_as(cache)


@pytest.mark.parametrize("workspace", [1 << 24, 200])
@pytest.mark.parametrize("shape", SHAPES)
def test_matches_masked_dense_attention(monkeypatch, workspace, shape):
    monkeypatch.setitem(chunks.WORKSPACE_ELEMENTS, "cpu", workspace)
    q, cache, slots, latent = case(**shape)
    out, lse = sparse_mla(q, cache, slots, counted(slots), 0.3, latent)
    want, want_lse, some = dense(q, cache.view(-1, cache.shape[-1]), slots, 0.3, latent)
    torch.testing.assert_close(out[some], want[some].float(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(lse[some], want_lse[some].float(), rtol=1e-4, atol=1e-5)
    assert not out[~some].any() and torch.isneginf(lse[~some]).all()
    assert (~some).sum() == len(q[1::4]) and out.dtype == q.dtype and lse.dtype == torch.float32


@pytest.mark.parametrize("query", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("shape", [*SHAPES[:2], dict(k=20, latent=700, rope=20)])
def test_types_of_queries_and_rows(query, stored, shape):
    q, cache, slots, latent = case(**shape)
    q, cache = q.to(query), cache.to(stored)
    out, lse = sparse_mla(q, cache, slots, counted(slots), 0.3, latent)
    want, want_lse, some = dense(q, cache.view(-1, cache.shape[-1]), slots, 0.3, latent)
    assert out.dtype == query and lse.dtype == torch.float32
    rounding = 4 * torch.finfo(query).eps if query != torch.float32 else 1e-4
    error = (out[some] - want[some]).abs().max() / want[some].abs().max()
    assert error < rounding
    torch.testing.assert_close(lse[some], want_lse[some].float(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("poison", [1e30, float("nan")])
def test_padding_never_reads_the_cache(shape, poison):
    """0 x NaN is NaN: a padded entry must not read slot 0, or any slot that is not named."""
    q, cache, slots, latent = case(**shape)
    slots[slots == 0] = -1
    want = sparse_mla(q, cache, slots, counted(slots), 0.3, latent)
    poisoned = used_rows(cache, slots, poison)
    assert not torch.equal(poisoned[0, 0], cache[0, 0])
    got = sparse_mla(q, poisoned, slots, counted(slots), 0.3, latent)
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_poisoned_row_that_is_used_shows(shape):
    q, cache, slots, latent = case(**shape)
    cache.view(-1, cache.shape[-1])[int(slots[0, -1])] = float("nan")
    out, _ = sparse_mla(q, cache, slots, counted(slots), 0.3, latent)
    assert out[0].isnan().all()


def test_a_token_whose_logits_are_all_minus_infinity_shows():
    """It has a slot, so it is no token without any."""
    q, cache, slots, latent = case()
    q[0], cache.view(-1, cache.shape[-1])[slots[0].long()] = 1.0, float("-inf")
    out, _ = sparse_mla(q, cache, slots, counted(slots), 0.3, latent)
    assert out[0].isnan().all()


@pytest.mark.parametrize("scale", [1e-30, 1.0, 300.0])
def test_extreme_scales(scale):
    """From all weights equal to all weight on one slot."""
    q, cache, slots, latent = case(**SHAPES[1])
    out, lse = sparse_mla(q, cache, slots, counted(slots), scale, latent)
    want, want_lse, some = dense(q, cache.view(-1, cache.shape[-1]), slots, scale, latent)
    torch.testing.assert_close(out[some], want[some].float(), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(lse[some], want_lse[some].float(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_places_of_the_slots_do_not_matter(shape):
    """-1 stands in the middle, before the first and behind the last."""
    q, cache, slots, latent = case(**shape)
    want = sparse_mla(q, cache, slots, counted(slots), 0.3, latent)
    apart = torch.full((len(slots), 3 * slots.shape[1] + 40), -1, dtype=torch.int32)
    apart[:, 1 : 3 * slots.shape[1] : 3] = slots
    got = sparse_mla(q, cache, apart, counted(slots), 0.3, latent)
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_other_strides_and_64_bit_slots(shape):
    q, cache, slots, latent = case(**shape)
    want = sparse_mla(q, cache, slots, counted(slots), 0.3, latent)
    apart = q.transpose(0, 1).contiguous().transpose(0, 1)
    rows = cache.view(-1, cache.shape[-1]).repeat(1, 2)[:, : cache.shape[-1]]
    wide = slots.long().repeat_interleave(2, 1)[:, ::2]
    for queries in (apart, q.repeat_interleave(2, 2)[..., ::2]):
        got = sparse_mla(queries, rows, wide, counted(slots), 0.3, latent)
        assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("shape", SHAPES)
def test_all_of_the_result_is_written(monkeypatch, shape):
    """What a kernel allocates may hold NaN: parts of a token's slots that are empty, too."""
    q, cache, slots, latent = case(**shape)
    want = sparse_mla(q, cache, slots, counted(slots), 0.3, latent)
    plain = torch.Tensor.new_empty

    def poisoned(*args, **kwargs):
        new = plain(*args, **kwargs)
        return new.fill_(float("nan")) if new.is_floating_point() else new

    monkeypatch.setattr(torch.Tensor, "new_empty", poisoned)
    got = sparse_mla(q, cache, slots, counted(slots), 0.3, latent)
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


def test_no_token():
    q, cache, slots, latent = case()
    out, lse = sparse_mla(q[:0], cache, slots[:0], counted(slots[:0]), 0.3, latent)
    assert out.shape == (0, 3, 6) and lse.shape == (0, 3)


def published(tokens, heads, context, fp8):
    """(q, cache, slots): of each token 2048 slots or all there are, some of them -1."""
    blocks = -(-context // 64)
    q = randn(tokens, heads, 576).bfloat16()
    cache = torch.empty(blocks, 64, 656 if fp8 else 576, dtype=torch.uint8 if fp8 else q.dtype)
    cache.view(torch.uint8).fill_(0xFF)
    ckv, kpe = randn(context, 512, seed=1).bfloat16(), randn(context, 64, seed=2).bfloat16()
    latent.latent_store(ckv, kpe, cache, torch.arange(context))
    slots = torch.full((tokens, 2048), -1, dtype=torch.int32)
    for t in range(tokens):
        chosen = randperm(context, t)[: 2048 - 150 * (t % 3)].sort().values
        slots[t, : len(chosen)] = chosen.int()
    slots[1::4, 100:300] = -1
    return q, cache, slots


@pytest.mark.gpu
@pytest.mark.parametrize("pair", ["cuda"], indirect=True)
class TestPublishedShapes:
    """DeepSeek-V3.2's: against the twin on the same device, each twice."""

    @pytest.mark.parametrize("heads", [128, 64, 32, 16, 8])
    @pytest.mark.parametrize(
        ("tokens", "context"), [(1, 1), (1, 131072 + 7), (16, 8192), (300, 3000)]
    )
    @pytest.mark.parametrize("fp8", [False, True])
    @pytest.mark.parametrize("scale", [576**-0.5, 3.0])
    def test_against_the_twin(self, heads, tokens, context, fp8, scale):
        q, cache, slots = published(tokens, heads, context, fp8)
        first, again = (sparse_mla(q, cache, slots, counted(slots), scale, 512) for _ in range(2))
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
        with kernels.backend("torch"):
            want = sparse_mla(q, cache, slots, counted(slots), scale, 512)
        assert (first[0].float() - want[0].float()).norm() < 5e-3 * want[0].float().norm()
        torch.testing.assert_close(first[1], want[1], rtol=1e-4, atol=1e-3)

    @pytest.mark.parametrize("tokens", [2, 40])
    def test_float32(self, tokens):
        q, cache, slots = published(tokens, 128, 4000, fp8=False)
        q, cache = q.float(), cache.float()
        got = sparse_mla(q, cache, slots, counted(slots), 0.04, 512)
        with kernels.backend("torch"):
            want = sparse_mla(q, cache, slots, counted(slots), 0.04, 512)
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("tokens", [1, 300])
    def test_a_token_with_nothing(self, tokens):
        q, cache, slots = published(tokens, 128, 3000, fp8=True)
        slots[-1] = -1
        out, lse = sparse_mla(q, cache, slots, counted(slots), 0.04, 512)
        assert not out[-1].any() and lse[-1].isneginf().all()
        assert out.isfinite().all() and lse[:-1].isfinite().all()

    @pytest.mark.parametrize("tokens", [1, 16])
    def test_a_graph_replays_with_other_inputs(self, tokens):
        q, cache, slots = published(tokens, 128, 3000, fp8=True)
        counts = counted(slots)
        sparse_mla(q, cache, slots, counts, 0.04, 512)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            got = sparse_mla(q, cache, slots, counts, 0.04, 512)
        q.copy_(randn(*q.shape, seed=7))
        slots[:, 50:] = -1
        graph.replay()
        want = sparse_mla(q, cache, slots, counts, 0.04, 512)
        assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))

    def test_slots_beyond_what_32_bits_can_address(self):
        """Rows behind the 2^31st byte."""
        q, cache, slots = published(4, 16, 3000, fp8=True)
        far = torch.zeros(60000, *cache.shape[1:], dtype=torch.uint8)
        far[-len(cache) :] = cache
        away = torch.where(slots < 0, slots, slots + 64 * (len(far) - len(cache)))
        got = sparse_mla(q, far, away, counted(slots), 0.04, 512)
        want = sparse_mla(q, cache, slots, counted(slots), 0.04, 512)
        assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


def test_the_twin_has_a_gradient():
    """Against dense attention's, by torch itself."""
    q = randn(3, 2, 6).requires_grad_()
    cache = randn(4, 1, 6, seed=1).requires_grad_()
    slots = here(torch.tensor([[0, 1, 2], [3, -1, 0], [2, 2, 1]], dtype=torch.int32))
    with kernels.backend("torch"):
        out, _ = sparse_mla(q, cache, slots, (slots >= 0).sum(-1), 0.5, 4)
    rows = cache.view(4, 6)[slots.clamp_min(0).long()]
    logits = (q @ rows.transpose(1, 2) * 0.5).masked_fill((slots < 0)[:, None], float("-inf"))
    want = logits.softmax(-1) @ rows[..., :4]
    seen = randn(*out.shape, seed=2)
    got = torch.autograd.grad((out * seen).sum(), (q, cache))
    for a, b in zip(got, torch.autograd.grad((want * seen).sum(), (q, cache)), strict=True):
        torch.testing.assert_close(a, b)
