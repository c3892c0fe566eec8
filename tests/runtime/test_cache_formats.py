"""Caches of each form under the whole model."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from ixsearch import kernels
from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.cache import BLOCK_SIZE, PagedCache, blocks_for
from ixsearch.runtime.cache_format import CACHES, CacheFormat, poison
from ixsearch.runtime.interface import Document, Request
from ixsearch.runtime.serving import BlockPool
from ixsearch.runtime.step import Part, Step

from .forward import full_forward, poisoned_cache
from .test_parity import tokens_for

ALL = Pattern.all_full(6)
FP8 = CacheFormat(torch.float32, fp8_latent=True, fp8_indexer=True)
TOPK = 12


@pytest.fixture(scope="module", params=["fp8", "fp8-indexer"])
def engine(request, deepseek_folder):
    return NativeEngine.load(deepseek_folder, device="cpu", cache=request.param)


def test_bytes_a_token(deepseek):
    published = replace(
        deepseek.model.config,
        num_hidden_layers=61,
        kv_lora_rank=512,
        qk_rope_head_dim=64,
        index_head_dim=128,
    )
    plain = CacheFormat(torch.bfloat16)
    assert (plain.latent_bytes(published), plain.indexer_bytes(published)) == (1152, 256)
    assert (FP8.latent_bytes(published), FP8.indexer_bytes(published)) == (656, 132)
    half = Pattern("F" + "SF" * 30)
    assert FP8.token_bytes(published, half) == 61 * 656 + 31 * 132


@pytest.mark.parametrize("form", [CacheFormat(torch.bfloat16), FP8])
def test_bytes_a_token_are_what_is_allocated(deepseek, form):
    pattern = Pattern("FSFSSF")
    config = deepseek.model.config
    cache = PagedCache(config, pattern, 3, form, torch.device("cpu"))
    tensors = [t for c in cache.layers for t in (c.latent, c.indexer_keys) if t is not None]
    used = sum(t.numel() * t.element_size() for t in tensors)
    assert used == 3 * BLOCK_SIZE * form.token_bytes(config, pattern)
    assert len(tensors) == 6 + 3


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn]
)
def test_poison_is_nan(dtype):
    pages = torch.zeros(2, 4, 8, dtype=dtype)
    poison(pages)
    assert pages.float().isnan().all()


def test_names(deepseek, deepseek_folder, engine):
    assert all(CacheFormat.named(name, torch.float32).name == name for name in CACHES)
    assert CacheFormat.named("auto", torch.float32) == CacheFormat(torch.float32)
    assert deepseek.describe().cache == "float"
    assert engine.describe().cache == engine.model.cache_format.name != "float"
    with pytest.raises(IxsearchError, match="'int4' is not known: auto, float, fp8-indexer, fp8"):
        NativeEngine.load(deepseek_folder, device="cpu", cache="int4")


def test_float_caches_are_plain_rows_bit_for_bit(deepseek, monkeypatch):
    """Scores as from code that knows of no format: rows are put in place and read back."""
    documents = [Document("a", tuple(tokens_for(0, 90))), Document("b", tuple(tokens_for(1, 130)))]
    patterns = [ALL, Pattern("FSFSSF")]
    want = deepseek.score(documents, patterns)

    def latent_store(ckv, kpe, cache, slots):
        cache.view(-1, cache.shape[-1])[slots] = torch.cat((ckv, kpe), -1)

    def key_store(k, weight, bias, eps, cos, sin, layout, cache, slots):
        k, rotated = F.layer_norm(k, k.shape[-1:], weight, bias, eps), 2 * cos.shape[-1]
        k = torch.cat((kernels.rope(k[:, :rotated], cos, sin, layout), k[:, rotated:]), -1)
        cache.view(-1, cache.shape[-1])[slots] = k

    def gather_keys(cache, table, lengths, *, total):
        assert len(table) == 1 and total == int(lengths)
        return cache[table[0].long()].flatten(0, 1)[: int(lengths)], None

    monkeypatch.setattr(kernels, "latent_store", latent_store)
    monkeypatch.setattr(kernels, "indexer_key_store", key_store)
    monkeypatch.setattr(kernels, "gather_indexer_keys", gather_keys)
    fresh = NativeEngine(deepseek.model, deepseek.describe())
    assert fresh.score(documents, patterns) == want


def rounded(x, floor_on_scale):
    """Values as e4m3 with one power-of-two scale a row holds them (no row here has two groups)."""
    assert x.shape[-1] <= 128
    amax = x.abs().amax(-1, keepdim=True)
    least = (amax / 448).clamp_min(1e-4) if floor_on_scale else amax.clamp_min(1e-4) / 448
    scale = torch.exp2(torch.log2(least.double()).ceil()).float()
    return (x / scale).to(torch.float8_e4m3fn).float() * scale


@pytest.mark.parametrize("letters", ["FFFFFF", "FSFSSF"])
def test_fp8_caches_are_float_caches_of_rounded_values(
    deepseek, deepseek_folder, letters, monkeypatch
):
    """The whole model in fp8 against the float path, with what is stored and asked rounded."""
    fp8 = NativeEngine.load(deepseek_folder, device="cpu", cache="fp8")
    pattern, tokens = Pattern(letters), tokens_for(6, 100)
    got, (got_topk,) = full_forward(fp8.model, pattern, tokens)
    store, key_store, query = (
        kernels.latent_store,
        kernels.indexer_key_store,
        kernels.indexer_query,
    )

    def latent_store(ckv, kpe, cache, slots):
        store(rounded(ckv, True), kpe.bfloat16().float(), cache, slots)

    def indexer_key_store(*args):
        *_, cache, slots = args
        key_store(*args)
        flat = cache.view(-1, cache.shape[-1])
        flat[slots] = rounded(flat[slots], False)

    def indexer_query(*args, quantise):
        assert not quantise
        q, weights = query(*args)
        return rounded(q, False), weights

    monkeypatch.setattr(kernels, "latent_store", latent_store)
    monkeypatch.setattr(kernels, "indexer_key_store", indexer_key_store)
    monkeypatch.setattr(kernels, "indexer_query", indexer_query)
    want, (want_topk,) = full_forward(deepseek.model, pattern, tokens)
    off = (got - want).norm(dim=-1) / want.norm(dim=-1)
    assert off.median() < 1e-5  # a last bit may move a value to the next e4m3, later on
    assert torch.equal(got_topk[0].logical_TK, want_topk[0].logical_TK)


@pytest.mark.parametrize("letters", ["FSSSSS", "FSFSFS"])
@pytest.mark.parametrize("length", [1, TOPK - 1, TOPK])
def test_short_context_is_all_full_bit_for_bit(engine, letters, length):
    tokens = tokens_for(0, length)
    want, _ = full_forward(engine.model, ALL, tokens)
    got, _ = full_forward(engine.model, Pattern(letters), tokens)
    assert torch.equal(got, want)


def test_logits_are_near_those_of_float_caches(deepseek, engine):
    for letters in ("FFFFFF", "FSFSSF"):
        want, _ = full_forward(deepseek.model, Pattern(letters), tokens_for(0, TOPK))
        got, _ = full_forward(engine.model, Pattern(letters), tokens_for(0, TOPK))
        # All positions are selected: only fp8 latents can differ. A random model's router may
        # turn to another expert on any rounding, so that the median position counts.
        off = ((got - want).norm(dim=-1) / want.norm(dim=-1)).median()
        assert off < 0.15
        assert bool(off > 0) == engine.model.cache_format.fp8_latent


@pytest.mark.parametrize("length", [1, TOPK - 1, TOPK, TOPK + 1, 63, 64, 65, 128, 129])
@pytest.mark.parametrize("letters", ["FFFFFF", "FSFSSF"])
def test_unwritten_slots_are_never_read(engine, letters, length):
    """`full_forward` runs on a poisoned cache: one chunk, then chunks over block edges."""
    tokens = tokens_for(3, length)
    for chunk in (None, 50):
        logits, steps = full_forward(engine.model, Pattern(letters), tokens, chunk)
        assert logits.isfinite().all()
        for topk in steps[-1]:
            counts = (topk.logical_TK >= 0).sum(-1)
            assert torch.equal(counts, topk.counts_T.long()) and int(counts[-1]) == min(
                length, TOPK
            )


@pytest.mark.parametrize("letters", ["FFFFFF", "FSFSSF"])
def test_decoding_out_of_order_blocks_from_a_poisoned_cache(engine, letters):
    """A decode step reads what prefill wrote, through a table in no order."""
    model, pattern = engine.model, Pattern(letters)
    tokens = tokens_for(4, 130)
    want, _ = full_forward(model, pattern, tokens)
    cache, _ = poisoned_cache(model, pattern, len(tokens))
    table = [3, 0, 2]
    with torch.inference_mode():
        step = Step.prefill(table, 0, 129, model.device)
        model.forward(torch.tensor(tokens[:129]), cache, step)
        step = Step.of([Part(table, 129, 1)], model.device)
        got = model.logits(model.forward(torch.tensor(tokens[129:]), cache, step))[0]
    assert (got - want[-1]).abs().max() <= 0.1 * want[-1].abs().max()


@pytest.mark.parametrize("form", [CacheFormat(torch.float32), FP8])
def test_a_forked_request_has_copies_of_the_part_filled_page(deepseek, form):
    pattern = Pattern("FSFSSF")
    cache = PagedCache(deepseek.model.config, pattern, 6, form, torch.device("cpu"))
    pool, table = BlockPool(6, cache.copy_block), []
    assert pool.reserve(table, 0, 100)
    for i, layer in enumerate(cache.layers):
        for pages in _pages(layer):
            pages[table[1]].view(torch.uint8).fill_(i + 1)
    forked = pool.fork(table)
    assert pool.reserve(forked, 70, 71)
    assert forked[0] == table[0] and forked[1] not in table and blocks_for(70) == len(forked)
    for i, layer in enumerate(cache.layers):
        for pages in _pages(layer):
            assert (pages[forked[1]].view(torch.uint8) == i + 1).all()


def _pages(layer):
    return [p for p in (layer.latent, layer.indexer_keys) if p is not None]


def test_generation_and_scores_run(engine):
    engine.set_pattern(Pattern("FSFSSF"))
    context = tuple(tokens_for(5, 70))
    requests = [Request((*context, 3), 5), Request((*context, 4), 5), Request(context[:20], 5)]
    together = engine.generate(requests)
    assert [len(new) for new in together] == [5, 5, 5]
    assert together[2] == engine.generate(requests[2:])[0]
    document = Document("a", tuple(tokens_for(1, 90)))
    (all_full,), (shared,) = engine.score([document], [ALL, Pattern("FSFSSF")])
    assert all_full.divergence_sum == 0 < shared.divergence_sum
