"""The MTP layer against its formulas, and what of it a checkpoint has."""

import shutil

import pytest
import torch
from safetensors.torch import load_file

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime import NativeEngine, indexer
from ixsearch.runtime.cache import LayerCache, blocks_for
from ixsearch.runtime.checkpoint import Checkpoint
from ixsearch.runtime.interface import Request
from ixsearch.runtime.quantise import quantise_checkpoint
from ixsearch.runtime.step import Step

from .changes import change_config, change_tensors
from .forward import mtp_forward
from .mtp_oracle import LAYER, MtpOracle, save_with_mtp
from .oracle import FAMILIES, make_model
from .test_parity import tokens_for

PREFIX = f"model.layers.{LAYER}."
ALL = Pattern.all_full(6)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    def make(family):
        model = make_model(family, seed=1)
        return save_with_mtp(model, tmp_path_factory.mktemp(f"mtp_{family}"), seed=2)

    return {family: make(family) for family in FAMILIES}


@pytest.fixture
def copy(folders, tmp_path):
    return shutil.copytree(folders["deepseek_v32"], tmp_path / "model")


def load(folder):
    return NativeEngine.load(folder, device="cpu").model


def run_layer(model, following, hidden, chunk, monkeypatch):
    """y, logits and selected positions, by chunks over poisoned caches."""
    found, plain = [], indexer.Indexer.__call__

    def spy(self, *args):
        topk = plain(self, *args)
        found.extend({p for p in row if p >= 0} for row in topk.logical_TK.tolist())
        return topk

    monkeypatch.setattr(indexer.Indexer, "__call__", spy)
    table = list(range(blocks_for(len(following))))[::-1]
    cache = LayerCache.allocate(model.config, True, 4, model.cache_format, model.device)
    cache.poison()
    parts = []
    for start in range(0, len(following), chunk):
        part = torch.tensor(following[start : start + chunk])
        step = Step.prefill(table, start, len(part), model.device)
        rows = hidden[start : start + chunk]
        parts.append(model.mtp(part, rows, cache, model.table, step))
    y = torch.cat(parts)
    return y, model.mtp.logits(y), found


@pytest.mark.parametrize("chunk", [80, 23])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_layer_is_its_formulas(folders, family, chunk, monkeypatch):
    model = load(folders[family])
    following = tokens_for(5, 80)
    hidden = torch.randn(80, 64, generator=torch.Generator().manual_seed(6))
    y, logits, selected = run_layer(model, following, hidden, chunk, monkeypatch)
    want_y, want_logits, want_selected = MtpOracle(folders[family])(following, hidden)
    assert selected == want_selected
    assert max(len(rows) for rows in selected) == 12 < 80
    for got, want in ((y, want_y), (logits, want_logits)):
        assert (got - want).abs().max() <= 1e-5 * want.abs().max()


def test_nothing_stands_for_the_token_after_position_0(folders, monkeypatch):
    """And only there: another token changes its row, and the rows that see it."""
    model = load(folders["deepseek_v32"])
    hidden = torch.randn(9, 64, generator=torch.Generator().manual_seed(6))
    tokens = tokens_for(5, 9)
    first, *_ = run_layer(model, tokens, hidden, 9, monkeypatch)
    other, *_ = run_layer(model, [tokens[0] + 1, *tokens[1:]], hidden, 9, monkeypatch)
    assert torch.equal(first, other)
    other, *_ = run_layer(model, [tokens[0], tokens[1] + 1, *tokens[2:]], hidden, 9, monkeypatch)
    changed = (first - other).abs().amax(-1)
    assert changed[0] < 1e-5 and (changed[1:] > 1e-3).all()


@pytest.mark.parametrize("letters", ["FFFFFF", "FSFSSF", "FSSSSS"])
def test_its_own_indexer_runs_whatever_the_pattern(folders, letters, monkeypatch):
    calls, plain = [], indexer.Indexer.__call__

    def spy(self, *args):
        calls.append(self.layer)
        topk = plain(self, *args)
        assert topk.source == self.layer
        return topk

    monkeypatch.setattr(indexer.Indexer, "__call__", spy)
    model, pattern = load(folders["deepseek_v32"]), Pattern(letters)
    _, drafts = mtp_forward(model, pattern, tokens_for(0, 60), chunk=25)
    assert calls == [*pattern.full_layers, LAYER] * 3
    assert drafts.isfinite().all()


def test_chunks_change_nothing(folders):
    model = load(folders["glm_moe_dsa"])
    tokens = tokens_for(3, 150)
    _, whole = mtp_forward(model, Pattern("FSFSSF"), tokens)
    _, parts = mtp_forward(model, Pattern("FSFSSF"), tokens, chunk=37)
    torch.testing.assert_close(parts, whole, rtol=1e-4, atol=1e-4)


def test_tables_of_its_own(folders, copy):
    model = load(copy)
    own = load_file(copy / "model.safetensors")
    assert torch.equal(model.mtp.embedding, own[PREFIX + "embed_tokens.weight"])
    assert torch.equal(model.mtp.head, own[PREFIX + "shared_head.head.weight"])
    assert not torch.equal(model.mtp.head, model.top.head)


@pytest.mark.parametrize("copies", [True, False])
def test_tables_of_the_model_are_held_once(copy, copies):
    def change(tensors):
        for name, source in (
            ("embed_tokens.weight", "model.embed_tokens.weight"),
            ("shared_head.head.weight", "lm_head.weight"),
        ):
            del tensors[PREFIX + name]
            if copies:
                tensors[PREFIX + name] = tensors[source].clone()

    change_tensors(copy, change)
    model = load(copy)
    assert model.mtp.embedding is model.top.embedding and model.mtp.head is model.top.head


@pytest.mark.parametrize("promised", [0, 1])
def test_a_checkpoint_without_the_layer(deepseek_folder, tmp_path, promised):
    folder = shutil.copytree(deepseek_folder, tmp_path / "model")
    change_config(folder, num_nextn_predict_layers=promised)
    assert load(folder).mtp is None


def test_a_layer_that_no_configuration_promises(copy):
    change_config(copy, num_nextn_predict_layers=0)
    assert load(copy).mtp is not None


def test_a_shortened_copy_of_a_larger_model_has_none(deepseek_folder, tmp_path):
    folder = shutil.copytree(deepseek_folder, tmp_path / "model")
    change_config(folder, num_hidden_layers=5, mlp_layer_types=None)
    assert load(folder).mtp is None


def test_every_wrong_tensor_is_named(copy):
    def change(tensors):
        del tensors[PREFIX + "eh_proj.weight"]
        del tensors[PREFIX + "self_attn.indexer.wk.weight"]
        del tensors[PREFIX + "mlp.experts.3.up_proj.weight"]
        tensors[PREFIX + "shared_head.head.weight"] = torch.ones(7, 64)
        del tensors["model.layers.3.self_attn.q_b_proj.weight"]

    change_tensors(copy, change)
    with pytest.raises(IxsearchError) as caught:
        load(copy)
    text = str(caught.value)
    assert "5 tensors do not fit" in text
    for name in ("eh_proj", "self_attn.indexer.wk", "mlp.experts.3.up_proj"):
        assert f"{PREFIX}{name}.weight is missing" in text
    assert f"{PREFIX}shared_head.head.weight is [7, 64], the configuration says [97, 64]" in text


def test_more_layers_than_the_first_are_told_of(copy):
    change_config(copy, num_nextn_predict_layers=3)
    with pytest.warns(UserWarning, match="3 MTP layers: layer 6, the first, is loaded"):
        assert load(copy).mtp.layer == LAYER


def test_it_is_read_when_it_is_first_asked_for(folders, monkeypatch):
    names, plain = [], Checkpoint.read

    def spy(self, name, pinned=False):
        names.append(name)
        return plain(self, name, pinned)

    monkeypatch.setattr(Checkpoint, "read", spy)
    engine = NativeEngine.load(folders["deepseek_v32"], device="cpu")
    engine.generate([Request((1, 2, 3), 2)])
    assert not any(name.startswith(PREFIX) for name in names)
    engine.generate([Request((1, 2, 3), 2)], speculative=1)
    assert sum(name.startswith(PREFIX) for name in names) > 20
    assert engine.model.mtp is engine.model.mtp


def test_none_where_the_weights_stay_on_disk(folders):
    engine = NativeEngine.load(folders["deepseek_v32"], device="cpu", offload=True)
    assert engine.model.mtp is None
    with pytest.raises(IxsearchError, match="cannot decode with offload"):
        engine.generate([Request((1, 2, 3), 2)], speculative=1)


def test_in_fp8(folders, tmp_path):
    """Kept in FP8, the layer gives what it gives dequantised."""
    folder = quantise_checkpoint(folders["glm_moe_dsa"], tmp_path / "fp8")
    kept, whole = (
        NativeEngine.load(folder, device="cpu", fp8=mode).model for mode in ("keep", "dequantise")
    )
    assert kept.mtp.block.attention.o_proj.scale is not None
    assert whole.mtp.block.attention.o_proj.scale is None
    tokens = tokens_for(0, 60)
    for got, want in zip(
        mtp_forward(kept, ALL, tokens), mtp_forward(whole, ALL, tokens), strict=True
    ):
        assert torch.equal(got, want)
