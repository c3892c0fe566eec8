"""Checkpoints in FP8 against their dequantised twins, and against transformers."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime import NativeEngine, linear
from ixsearch.runtime.interface import Document, Request
from ixsearch.runtime.linear import ExpertLinear, Linear, dequantise
from ixsearch.runtime.quantise import quantise_checkpoint, quantise_matrix

from .changes import change_config, change_tensors
from .forward import full_forward
from .oracle import FAMILIES, Oracle, make_model, save
from .test_loading import message
from .test_parity import assert_same, tokens_for

ALL = Pattern.all_full(6)


def dense(weight, scale):
    """weight x scale, value by value: the definition."""
    rows = torch.arange(weight.shape[0]) // 128
    columns = torch.arange(weight.shape[1]) // 128
    return weight.float() * scale[rows[:, None], columns[None, :]]


def twin(folder, target):
    """The same weights in float32, made with safetensors alone."""
    target.mkdir()
    tensors = load_file(folder / "model.safetensors")
    whole = {}
    for name, value in tensors.items():
        if value.dtype == torch.float8_e4m3fn:
            whole[name] = dense(value, tensors[f"{name}_scale_inv"])
        elif not name.endswith("_scale_inv"):
            whole[name] = value
    save_file(whole, target / "model.safetensors", metadata={"format": "pt"})
    data = json.loads((folder / "config.json").read_text())
    del data["quantization_config"]
    (target / "config.json").write_text(json.dumps(data))
    return target


@pytest.fixture(scope="module", params=sorted(FAMILIES))
def pair(request, tmp_path_factory):
    """(folder in FP8, folder of its dequantised twin); sizes that no block of 128 divides."""
    base = tmp_path_factory.mktemp("fp8")
    model = make_model(
        request.param, seed=8, hidden_size=160, moe_intermediate_size=136, index_n_heads=32
    )
    folder = quantise_checkpoint(save(model, base / "float"), base / "fp8")
    return folder, twin(folder, base / "twin")


@pytest.mark.parametrize("mode", ["keep", "dequantise"])
def test_equals_its_dequantised_twin(pair, mode):
    """Bit for bit: matrices of one block of rows are dequantised whole."""
    small, large = pair
    tokens = tokens_for(0, 60)
    want, _ = full_forward(NativeEngine.load(large, device="cpu").model, ALL, tokens)
    engine = NativeEngine.load(small, device="cpu", fp8=mode)
    got, _ = full_forward(engine.model, ALL, tokens)
    assert torch.equal(got, want)


@pytest.mark.parametrize("mode", ["keep", "dequantise"])
def test_parity_with_transformers(pair, mode):
    """transformers runs the twin; logits and top-k sets."""
    small, large = pair
    family = json.loads((large / "config.json").read_text())["model_type"]
    model = FAMILIES[family][1].from_pretrained(large, attn_implementation="eager").eval()
    engine = NativeEngine.load(small, device="cpu", fp8=mode)
    for letters in ("FFFFFF", "FSFSSF"):
        assert_same(engine, Oracle(model, later_wins=True), letters, tokens_for(1))


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_parity_with_transformers_own_reader_of_fp8(family, tmp_path):
    """Of sizes that blocks divide: others it takes for smaller blocks, or refuses."""
    pytest.importorskip("accelerate")
    from transformers import FineGrainedFP8Config

    sizes = dict(hidden_size=256, intermediate_size=256, moe_intermediate_size=128)
    ranks = dict(q_lora_rank=128, kv_lora_rank=112, qk_rope_head_dim=16, index_n_heads=32)
    heads = dict(num_attention_heads=8, num_key_value_heads=8, qk_nope_head_dim=32, v_head_dim=32)
    model = make_model(family, seed=8, **sizes, **ranks, **heads)
    folder = quantise_checkpoint(save(model, tmp_path / "float"), tmp_path / "fp8")
    theirs = FAMILIES[family][1].from_pretrained(
        folder,
        attn_implementation="eager",
        quantization_config=FineGrainedFP8Config(dequantize=True),
        dtype=torch.float32,
    )
    for mode in ("keep", "dequantise"):
        engine = NativeEngine.load(folder, device="cpu", fp8=mode)
        oracle = Oracle(theirs.eval(), later_wins=True)
        assert_same(engine, oracle, "FSFSSF", tokens_for(1))


def test_the_loss_of_quantisation_is_small_but_there(pair, tmp_path):
    _, large = pair
    tensors = load_file(large / "model.safetensors")
    name = "model.layers.0.self_attn.o_proj.weight"
    weight, scale = quantise_matrix(tensors[name])
    error = (dense(weight, scale) - tensors[name]).abs().max() / tensors[name].abs().max()
    assert error < 1e-6  # the twin is on the grid already
    noise = torch.randn(130, 257)
    weight, scale = quantise_matrix(noise)
    assert scale.shape == (2, 3)
    relative = ((dense(weight, scale) - noise).abs() / noise.abs().max()).max()
    assert 0 < relative <= 2**-4


def test_what_stays_as_it_is(pair):
    tensors = load_file(pair[0] / "model.safetensors")
    quantised = {n for n, t in tensors.items() if t.dtype == torch.float8_e4m3fn}
    assert {f"{n}_scale_inv" for n in quantised} <= tensors.keys()
    assert "model.layers.0.self_attn.indexer.wq_b.weight" in quantised
    assert "model.layers.3.mlp.experts.0.gate_proj.weight" in quantised
    assert "model.layers.3.mlp.shared_experts.gate_proj.weight" in quantised
    words = ("embed", "lm_head", "norm", "mlp.gate.", "weights_proj")
    assert not [n for n in quantised if any(word in n for word in words)]


def test_which_tensors_are_fp8_is_told_by_the_file(pair, tmp_path):
    """Some in float, some not, and a gate in FP8 beside an up in float."""
    small, large = pair
    target = tmp_path / "mixed"
    target.mkdir()
    (target / "config.json").write_text((small / "config.json").read_text())
    tensors, whole = (load_file(f / "model.safetensors") for f in pair)
    for name in list(tensors):
        if ("up_proj" in name or "kv_a_proj" in name) and name.endswith("weight"):
            tensors[name] = whole[name]
            del tensors[f"{name}_scale_inv"]
    save_file(tensors, target / "model.safetensors")
    want, _ = full_forward(NativeEngine.load(large, device="cpu").model, ALL, tokens_for(0, 40))
    got = NativeEngine.load(target, device="cpu", fp8="keep").model
    assert torch.equal(full_forward(got, ALL, tokens_for(0, 40))[0], want)


def tensors_of(thing, seen=None):
    """Every tensor that an object of ours holds."""
    seen = set() if seen is None else seen
    if isinstance(thing, torch.Tensor):
        yield thing
    elif isinstance(thing, list | tuple):
        for part in thing:
            yield from tensors_of(part, seen)
    elif hasattr(thing, "__dict__") and id(thing) not in seen:
        seen.add(id(thing))
        yield from tensors_of(list(vars(thing).values()), seen)


def test_kept_weights_take_a_byte_each(pair):
    def held(mode):
        layers = NativeEngine.load(pair[0], device="cpu", fp8=mode).model.layers
        return list(tensors_of(list(layers)))

    kept, whole = held("keep"), held("dequantise")
    assert any(t.dtype == torch.float8_e4m3fn for t in kept)
    assert not any(t.dtype == torch.float8_e4m3fn for t in whole)
    # kv_b is dequantised in both, for the absorbed form.
    assert sum(t.nbytes for t in kept) < 0.5 * sum(t.nbytes for t in whole)


def test_generate_and_score_in_both_modes(pair):
    answers = []
    for mode in ("keep", "dequantise"):
        engine = NativeEngine.load(pair[0], device="cpu", fp8=mode)
        new = engine.generate([Request(tuple(tokens_for(2, 30)), 8)])
        answers.append((new, engine.score([Document("a", tuple(tokens_for(3, 50)))], [ALL])))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 128, 128), (2, 300, 130), (1, 513, 256)])
def test_row_blocks_cover_a_large_matrix(shape, monkeypatch):
    """Blocks as small as can be; the definition is the reference."""
    generator = torch.Generator().manual_seed(0)
    pairs = [quantise_matrix(torch.randn(shape[1:], generator=generator)) for _ in range(shape[0])]
    weight, scale = (torch.stack(part) for part in zip(*pairs, strict=True))
    want = torch.cat([dense(w, s) for w, s in pairs])
    x = torch.randn(3, shape[2], generator=generator)
    monkeypatch.setattr(linear, "BLOCK_ELEMENTS", 1)
    sizes = []
    plain = linear._block

    def spy(weight, scale, rows):
        sizes.append(rows.stop - rows.start)
        return plain(weight, scale, rows)

    monkeypatch.setattr(linear, "_block", spy)
    layer = Linear(weight, scale)
    torch.testing.assert_close(layer(x), x @ want.T)
    assert max(sizes) <= 128 and sum(sizes) == shape[0] * shape[1]
    assert torch.equal(layer.matrix(torch.float32), want)
    assert torch.equal(dequantise(weight[0], scale[0], torch.bfloat16), dense(*pairs[0]).bfloat16())
    stacked = ExpertLinear(torch.stack([weight, weight]), torch.stack([scale, scale]))
    assert torch.equal(stacked.matrices(0, 2, torch.float32)[1], want)


QUANT = {
    "quant_method": "fp8",
    "fmt": "e4m3",
    "activation_scheme": "dynamic",
    "weight_block_size": [128, 128],
    "scale_fmt": "ue8m0",
    "modules_to_not_convert": ["lm_head"],
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"quant_method": "awq"}, "quant_method 'awq'"),
        ({"fmt": "e5m2"}, "fmt 'e5m2'"),
        ({"weight_block_size": [64, 64]}, "weight_block_size [64, 64]"),
        ({"weight_block_size": None}, "weight_block_size None"),
        ({"activation_scheme": "static"}, "activation_scheme 'static'"),
    ],
)
def test_other_quantisations_are_refused_with_the_reason(deepseek_folder, tmp_path, changes, words):
    folder = copy_of(deepseek_folder, tmp_path)
    change_config(folder, quantization_config=QUANT | changes)
    assert words in message(folder)


def copy_of(folder, tmp_path):
    import shutil

    return shutil.copytree(folder, tmp_path / "copy")


def test_a_configuration_of_fp8_over_float_weights_is_fine(deepseek_folder, deepseek, tmp_path):
    """Lists are not asked: the file says that nothing is quantised."""
    folder = copy_of(deepseek_folder, tmp_path)
    change_config(folder, quantization_config=QUANT)
    got, _ = full_forward(NativeEngine.load(folder, device="cpu").model, ALL, tokens_for(0, 30))
    want, _ = full_forward(deepseek.model, ALL, tokens_for(0, 30))
    assert torch.equal(got, want)


def test_wrong_scales_are_all_named(pair, tmp_path):
    folder = copy_of(pair[0], tmp_path)
    layer = "model.layers.1."

    def change(tensors):
        name = f"{layer}self_attn.o_proj.weight_scale_inv"
        tensors[name] = torch.ones(1, 1)
        name = f"{layer}self_attn.q_a_proj.weight_scale_inv"
        tensors[name] = tensors[name].bfloat16()
        del tensors[f"{layer}self_attn.q_b_proj.weight_scale_inv"]
        tensors[f"{layer}input_layernorm.weight_scale_inv"] = torch.ones(1)
        tensors["model.norm.weight"] = tensors["model.norm.weight"].to(torch.float8_e4m3fn)
        tensors["lm_head.weight_scale_inv"] = torch.ones(1, 2)

    change_tensors(folder, change)
    text = message(folder)
    assert "6 tensors do not fit" in text
    assert f"{layer}self_attn.o_proj.weight_scale_inv is [1, 1], blocks of 128 x 128 need" in text
    assert f"{layer}self_attn.q_a_proj.weight_scale_inv is BF16: scales are F32" in text
    assert f"{layer}self_attn.q_b_proj.weight is F8_E4M3 and its scales" in text
    assert f"{layer}input_layernorm.weight_scale_inv is not a tensor of this model" in text
    assert "model.norm.weight is F8_E4M3: " in text
    assert "lm_head.weight_scale_inv holds scales of a weight that is F32" in text


def test_the_switch_knows_two_words(deepseek_folder):
    with pytest.raises(IxsearchError, match="keep or dequantise"):
        NativeEngine.load(deepseek_folder, device="cpu", fp8="maybe")
