"""The same code on a CUDA device."""

import pytest
import torch

from ixsearch import kernels
from ixsearch.bundled import MODEL_FOLDER
from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Document, Request, Workload
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import bundled_documents, bundled_questions

from .forward import full_forward
from .oracle import make_model, save
from .test_parity import sets_of, tokens_for

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.fixture(scope="module", params=["deepseek_v32", "glm_moe_dsa"])
def engines(request, tmp_path_factory):
    """(on the CPU, on the GPU in float32, on the GPU in bfloat16)"""
    folder = save(
        make_model(request.param, seed=1, index_n_heads=32), tmp_path_factory.mktemp("gpu")
    )
    return (
        NativeEngine.load(folder, device="cpu"),
        NativeEngine.load(folder, device="cuda", dtype=torch.float32),
        NativeEngine.load(folder, device="cuda"),
    )


@pytest.mark.parametrize("letters", ["FFFFFF", "FSFSSF"])
def test_float32_is_what_the_cpu_gives(engines, letters):
    cpu, gpu, _ = engines
    pattern, tokens = Pattern(letters), tokens_for(0)
    want, (cpu_topk,) = full_forward(cpu.model, pattern, tokens)
    got, (gpu_topk,) = full_forward(gpu.model, pattern, tokens)
    assert (got.cpu() - want).abs().max() <= 2e-4 * want.abs().max()
    assert all(sets_of(a) == sets_of(b) for a, b in zip(cpu_topk, gpu_topk, strict=True))
    for engine in (cpu, gpu):
        engine.set_pattern(pattern)
    requests = [Request(tuple(tokens_for(i, 50 + i)), 16) for i in range(5)]
    assert cpu.generate(requests) == gpu.generate(requests)


def test_float32_scores(engines):
    cpu, gpu, _ = engines
    documents = [Document("a", tuple(tokens_for(1, 120)), ((60, 90),))]
    patterns = [Pattern(p) for p in ("FFFFFF", "FSFSFS", "FSSSSS")]
    wanted, found = cpu.score(documents, patterns), gpu.score(documents, patterns)
    for (want,), (got,) in zip(wanted, found, strict=True):
        assert got.tokens == want.tokens and got.matches == want.matches
        assert got.loss_sum == pytest.approx(want.loss_sum, rel=1e-4)
        assert got.divergence_sum == pytest.approx(want.divergence_sum, rel=1e-3, abs=1e-5)


def test_bfloat16_is_near(engines):
    cpu, _, half = engines
    info = half.describe()
    assert info.dtype == "bfloat16" and info.device == torch.cuda.get_device_name()
    documents = [Document("a", tuple(tokens_for(1, 120)))]
    (want,), (got,) = (engine.score(documents, [Pattern.all_full(6)])[0] for engine in (cpu, half))
    assert got.divergence_sum == 0
    assert got.loss_sum == pytest.approx(want.loss_sum, rel=0.05)
    timing = half.measure(Workload(context=64, batch=2, new_tokens=4))
    assert timing.prefill_s > 0 and timing.decode_s > 0


def test_fp8_rows_are_the_same_bytes():
    generator = torch.Generator().manual_seed(0)
    ckv, kpe = torch.randn(70, 200, generator=generator), torch.randn(70, 8, generator=generator)
    slots = torch.randperm(128, generator=generator)[:70]
    caches = []
    for device in ("cpu", "cuda"):
        width = kernels.fp8_latent_bytes(200, 8)
        caches.append(torch.zeros(2, 64, width, dtype=torch.uint8, device=device))
        kernels.latent_store(ckv.to(device), kpe.to(device), caches[-1], slots.to(device))
    assert torch.equal(caches[0], caches[1].cpu())


def test_fp8_caches(tmp_path):
    folder = save(make_model("deepseek_v32", seed=1, index_n_heads=32), tmp_path)
    cpu, gpu = (
        NativeEngine.load(folder, device=device, dtype=torch.float32, cache="fp8")
        for device in ("cpu", "cuda")
    )
    want, _ = full_forward(cpu.model, Pattern("FSFSSF"), tokens_for(0))
    got, _ = full_forward(gpu.model, Pattern("FSFSSF"), tokens_for(0))
    off = (got.cpu() - want).norm(dim=-1) / want.norm(dim=-1)
    assert off.median() < 1e-3
    requests = [Request(tuple(tokens_for(i, 50 + i)), 16) for i in range(5)]
    assert [len(new) for new in gpu.generate(requests)] == [16] * 5


@pytest.fixture(scope="module")
def bundled():
    """(on the CPU, on the GPU), both in float32."""
    return tuple(
        NativeEngine.load(MODEL_FOLDER, device=device, dtype=torch.float32)
        for device in ("cpu", "cuda")
    )


def through_both(bundled, pattern, tokens):
    """Logits and selections by the CPU's twins, then by the GPU's kernels."""
    want, (wanted,) = full_forward(bundled[0].model, pattern, tokens)
    with kernels.backend("triton"):
        got, (found,) = full_forward(bundled[1].model, pattern, tokens)
    full = pattern.full_layers
    return (
        want,
        got.cpu(),
        [wanted[i].logical_TK for i in full],
        [found[i].logical_TK for i in full],
    )


@pytest.mark.parametrize("letters", ["F" * 16, "FSFFFFFSFFSSSFSF"])
def test_the_bundled_model_through_the_kernels(bundled, letters):
    (document,) = bundled_documents("held-out", 1, Tokenizer.load(MODEL_FOLDER))
    want, got, wanted, found = through_both(bundled, Pattern(letters), list(document.tokens))
    assert (got - want).abs().amax(-1).quantile(0.99) <= 1e-4 * want.abs().max()
    log_p, log_q = want.double().log_softmax(-1), got.double().log_softmax(-1)
    assert (log_p.exp() * (log_p - log_q)).sum(-1).mean() <= 1e-7
    same = [(a == b.cpu()).all(-1).float().mean() for a, b in zip(wanted, found, strict=True)]
    assert min(same) >= 0.99


@pytest.mark.parametrize("letters", ["F" * 16, "FSFFFFFSFFSSSFSF"])
def test_the_bundled_model_writes_the_same_but_at_near_ties(bundled, letters):
    """Questions that it knows, and random tokens, whose next ones often nearly tie."""
    pattern, tokenizer = Pattern(letters), Tokenizer.load(MODEL_FOLDER)
    prompts = [tokenizer.encode(question.prompt) for question in bundled_questions(3)]
    draw = torch.Generator().manual_seed(0)
    prompts += torch.randint(3, 397, (3, 200), generator=draw).tolist()
    requests = [Request(tuple(prompt), 12) for prompt in prompts]
    for engine in bundled:
        engine.set_pattern(pattern)
    wanted = bundled[0].generate(requests)
    with kernels.backend("triton"):
        found = bundled[1].generate(requests)
    for prompt, want, got in zip(prompts, wanted, found, strict=True):
        place = next((i for i, (a, b) in enumerate(zip(want, got, strict=True)) if a != b), None)
        if place is not None:
            logits = full_forward(bundled[0].model, pattern, [*prompt, *want[:place]])[0][-1]
            gap = logits[want[place]] - logits[got[place]]
            assert gap <= 1e-4 * logits.abs().max(), (place, float(gap))
