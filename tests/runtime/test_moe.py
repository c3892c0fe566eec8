"""The grouped products of a mixture of experts against the loop over its experts."""

import json

import pytest
import torch
import torch.nn.functional as F

from ixsearch.runtime import NativeEngine, grouped
from ixsearch.runtime.interface import Document
from ixsearch.runtime.quantise import quantise_checkpoint

from .oracle import make_model, save
from .test_parity import tokens_for
from .test_score import EVERY


def by_definition(x, experts, weights, gate_up, down):
    """Token by token, in float64."""
    out = torch.zeros(x.shape, dtype=torch.float64)
    for t, row in enumerate(x.double()):
        for expert, weight in zip(experts[t].tolist(), weights[t].double(), strict=True):
            gate, up = (gate_up[expert].matrix(torch.float64) @ row).chunk(2)
            out[t] += weight * (down[expert].matrix(torch.float64) @ (F.silu(gate) * up))
    return out


def emulated(a_MK, b_EKN, *, offs):
    """torch's grouped_mm as its documentation says."""
    ends = offs.tolist()
    parts = [a_MK[i:j] @ b for i, j, b in zip([0, *ends[:-1]], ends, b_EKN, strict=True)]
    return torch.cat([*parts, a_MK.new_zeros(len(a_MK) - ends[-1], b_EKN.shape[-1])])


@pytest.fixture(scope="module", params=["float", "fp8"])
def moe(request, tmp_path_factory):
    base = tmp_path_factory.mktemp("moe")
    model = make_model("deepseek_v32", 6, num_hidden_layers=3, first_k_dense_replace=1)
    folder = save(model, base / "float")
    if request.param == "fp8":
        folder = quantise_checkpoint(folder, base / "fp8")
    engine = NativeEngine.load(folder, device="cpu", fp8="keep")
    return engine.model.layers[2].mlp


@pytest.mark.parametrize("tokens", [1, 2, 37])
@pytest.mark.parametrize("at_once", [1, 1 << 28])
def test_grouped_is_the_loop(moe, tokens, at_once, monkeypatch):
    monkeypatch.setattr(grouped, "DEQUANTISED", at_once)
    monkeypatch.setattr(grouped, "TOKENS", 16)
    monkeypatch.setattr(F, "grouped_mm", emulated)
    x = torch.randn(tokens, 64, generator=torch.Generator().manual_seed(tokens))
    experts, weights = moe.router(x)
    got = grouped.grouped_experts(x, experts, weights, moe.gate_up, moe.down)
    torch.testing.assert_close(moe(x), moe.shared(x) + got, rtol=1e-5, atol=1e-6)
    want = by_definition(x, experts, weights, moe.gate_up, moe.down)
    torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-6)


def test_experts_without_a_token(moe, monkeypatch):
    """The first, the last, and all but one."""
    monkeypatch.setattr(F, "grouped_mm", emulated)
    monkeypatch.setattr(grouped, "DEQUANTISED", 1)
    x = torch.randn(5, 64, generator=torch.Generator().manual_seed(0))
    for chosen in ([3, 4, 5], [0, 1, 2], [7, 6, 5]):
        experts = torch.tensor([chosen] * 5)
        weights = torch.rand(5, 3)
        got = grouped.grouped_experts(x, experts, weights, moe.gate_up, moe.down)
        want = by_definition(x, experts, weights, moe.gate_up, moe.down)
        torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-6)


def test_torchs_own_product_on_a_cpu(moe):
    """Where torch has it for this machine: in bfloat16, rounding apart the same."""
    x = torch.randn(9, 64, generator=torch.Generator().manual_seed(0)).bfloat16()
    experts, weights = moe.router(x)
    if moe.gate_up.scale is None:
        moe_weights = [part.weight_EPOI.bfloat16() for part in (moe.gate_up, moe.down)]
        gate_up, down = (type(moe.down)(w) for w in moe_weights)
    else:
        gate_up, down = moe.gate_up, moe.down
    try:
        got = grouped.grouped_experts(x, experts, weights, gate_up, down)
    except (RuntimeError, NotImplementedError, AttributeError) as error:
        pytest.skip(str(error)[:100])
    want = by_definition(x, experts, weights, gate_up, down)
    assert (got.double() - want).abs().max() <= 2e-2 * want.abs().max()


def test_a_cpu_takes_the_loop(moe):
    x = torch.zeros(2, 64, dtype=torch.bfloat16)
    assert not grouped.serves(x, moe.gate_up, moe.down)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
class TestOnCuda:
    @pytest.fixture(scope="class")
    def folders(self, tmp_path_factory):
        """Of sizes that a grouped product takes; in bfloat16, and in FP8."""
        base = tmp_path_factory.mktemp("gpu-moe")
        model = make_model(
            "deepseek_v32", 6, hidden_size=256, moe_intermediate_size=128, index_n_heads=32
        )
        folder = save(model, base / "float")
        return folder, quantise_checkpoint(folder, base / "fp8")

    @pytest.mark.parametrize("which", [0, 1])
    @pytest.mark.parametrize("tokens", [1, 3, 500])
    def test_grouped_is_the_loop(self, folders, which, tokens, monkeypatch):
        engine = NativeEngine.load(folders[which], device="cuda", fp8="keep")
        moe = engine.model.layers[3].mlp
        x = torch.randn(tokens, 256, generator=torch.Generator().manual_seed(0)).bfloat16().cuda()
        assert grouped.serves(x, moe.gate_up, moe.down)
        got = moe(x)
        monkeypatch.setattr(grouped, "serves", lambda *_: False)
        want = moe(x)
        assert (got - want).abs().max() <= 3e-2 * want.abs().max()

    def test_fp8_kept_and_dequantised(self, folders):
        kept = NativeEngine.load(folders[1], device="cuda")
        assert kept.model.layers[3].mlp.gate_up.weight_EPOI.dtype == torch.float8_e4m3fn
        whole = NativeEngine.load(folders[1], device="cuda", fp8="dequantise")
        document = Document("a", tuple(tokens_for(1, 120)))
        ((one,), (two,)) = (e.score([document], EVERY[:1])[0] for e in (kept, whole))
        assert one.loss_sum == pytest.approx(two.loss_sum, rel=0.02)

    @pytest.mark.parametrize("which", [0, 1])
    def test_offload_with_states_in_host_memory(self, folders, which):
        """A budget of little more than a layer: nothing but weights and one document there."""
        documents = [Document(f"d{i}", tuple(tokens_for(i, 120))) for i in range(6)]
        resident = NativeEngine.load(folders[which], device="cuda")
        want = resident.score(documents, EVERY[:6])
        del resident
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        budget = 6 << 20
        engine = NativeEngine.load(
            folders[which], device="cuda", offload=True, device_budget=budget
        )
        got = engine.score(documents, EVERY[:6])
        for a, b in zip(got, want, strict=True):
            for one, two in zip(a, b, strict=True):
                assert one.loss_sum == pytest.approx(two.loss_sum, rel=0.01)
        print(json.dumps({"peak": torch.cuda.max_memory_allocated() - before, "budget": budget}))
