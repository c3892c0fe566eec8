"""What the trainer writes, read by transformers and by our runtime."""

from __future__ import annotations

import json

import pytest
import torch
from training.exam import Exam, acceptance, grade
from training.export import SHARD_BYTES, checkpoint_tensors, export_folder, load_folder
from training.model import DsaModel
from training.mtp import DraftLayer
from training.patterns import uniform
from training.shape import Shape
from transformers import AutoTokenizer, DeepseekV32ForCausalLM

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.tokenizer import Tokenizer

from ..runtime.forward import full_forward
from ..runtime.oracle import Oracle

SMALL = Shape(
    num_hidden_layers=4,
    first_k_dense_replace=2,
    hidden_size=64,
    num_attention_heads=2,
    q_lora_rank=32,
    kv_lora_rank=24,
    qk_nope_head_dim=16,
    qk_rope_head_dim=8,
    v_head_dim=20,
    intermediate_size=48,
    moe_intermediate_size=16,
    index_head_dim=16,
    index_topk=12,
)


def scatter(module: torch.nn.Module) -> None:
    """Random values everywhere, none at its default, all exact in bfloat16."""
    with torch.no_grad():
        for name, value in module.state_dict().items():
            std = value.shape[-1] ** -0.5 if value.dim() > 1 else 0.1
            noise = torch.randn_like(value) * std
            noise += 1.0 if name.endswith("norm.weight") else 0.0
            value.copy_(noise.bfloat16().float())


@pytest.fixture(scope="module")
def models():
    torch.manual_seed(0)
    model, draft = DsaModel(SMALL), DraftLayer(SMALL)
    scatter(model)
    scatter(draft)
    return model, draft


@pytest.fixture(scope="module")
def folder(models, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported")
    export_folder(path, *models)
    return path


@pytest.fixture(scope="module")
def tokens():
    return Exam.draw("test", 1, torch.device("cpu")).tokens[0, :96].tolist()


@torch.no_grad()
def logits(model: DsaModel, tokens: list[int], pattern=None) -> torch.Tensor:
    batch = torch.tensor([tokens])
    return model.logits(model.sparse(batch, model.begin(batch), pattern))[0]


def test_transformers_computes_the_same(models, folder, tokens):
    model = DeepseekV32ForCausalLM.from_pretrained(folder, dtype=torch.float32)
    theirs = Oracle(model, later_wins=True).logits(tokens)
    torch.testing.assert_close(logits(models[0], tokens), theirs, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("pattern", ["FFFF", "FSFS", "FSSF"])
def test_our_runtime_computes_the_same(models, folder, tokens, pattern):
    engine = NativeEngine.load(folder, device="cpu")
    ours, _ = full_forward(engine.model, Pattern(pattern), tokens)
    expected = logits(models[0], tokens, [letter == "F" for letter in pattern])
    torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-4)


def test_what_is_read_back_is_what_was_written(models, folder):
    model, draft = load_folder(folder)
    for old, new in zip(models, (model, draft), strict=True):
        assert all(torch.equal(old.state_dict()[k], v) for k, v in new.state_dict().items())
    exam = Exam.draw("test", 1, torch.device("cpu"), tokens=800)
    assert grade(model, exam) == grade(models[0], exam)
    assert acceptance(model, draft, exam) == acceptance(*models, exam)


def test_the_mtp_layer_has_every_tensor_of_the_format(folder):
    names = set(json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"])
    layer = {n.removeprefix("model.layers.3.") for n in names if n.startswith("model.layers.3.")}
    draft = {n.removeprefix("model.layers.4.") for n in names if n.startswith("model.layers.4.")}
    extra = {"embed_tokens", "enorm", "hnorm", "eh_proj", "shared_head.norm", "shared_head.head"}
    assert draft == layer | {f"{name}.weight" for name in extra}
    assert "mlp.experts.7.down_proj.weight" in draft
    assert "self_attn.indexer.k_norm.bias" in draft


def test_the_config_is_plain(folder):
    config = json.loads((folder / "config.json").read_text())
    assert config["model_type"] == "deepseek_v32"
    assert "index_rope_head_dim" not in config
    assert config["topk_method"] == "noaux_tc" and config["scoring_func"] == "sigmoid"
    assert config["num_nextn_predict_layers"] == 1


def test_the_tokenizer_loads_in_both(folder):
    text = "Facts: Anna's friend is Otto.\nQuestion: é?\n"
    ours, theirs = Tokenizer.load(folder), AutoTokenizer.from_pretrained(folder)
    assert ours.encode(text) == theirs.encode(text)
    assert ours.decode(ours.encode(text)) == text
    assert ours.eos_token_ids == {ours.id_of("\n")}


def test_the_bundled_model_fits_in_two_files():
    shape = Shape()
    sizes = [t.nbytes for t in checkpoint_tensors(DsaModel(shape), DraftLayer(shape)).values()]
    assert sum(sizes) < min(29e6, 2 * SHARD_BYTES - max(sizes))
    assert shape.num_hidden_layers - shape.first_k_dense_replace >= shape.num_hidden_layers // 2
    assert shape.index_n_heads >= 8


def test_uniform_patterns():
    assert uniform(16, 8) == (True, False) * 8
    assert sum(uniform(16, 12)) == 12 and uniform(16, 12)[:5] == (True, True, True, False, True)
