"""Memory of a process that loads a checkpoint of some hundred megabytes."""

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file

from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.weights import layer_shapes, top_shapes

pytestmark = pytest.mark.slow
LAYERS = 12
CONFIG = {
    "architectures": ["DeepseekV32ForCausalLM"],
    "model_type": "deepseek_v32",
    "vocab_size": 1000,
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "moe_intermediate_size": 512,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "num_hidden_layers": LAYERS,
    "first_k_dense_replace": 0,
    "num_attention_heads": 4,
    "kv_lora_rank": 64,
    "q_lora_rank": 64,
    "qk_rope_head_dim": 16,
    "qk_nope_head_dim": 32,
    "v_head_dim": 32,
    "index_topk": 16,
    "index_head_dim": 32,
    "index_n_heads": 4,
    "max_position_embeddings": 256,
}
CHILD = """
import json, re, sys
import torch
torch.set_num_threads(1)
from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Document

def now(what="VmRSS"):
    return int(re.search(what + r":\\s*(\\d+)", open("/proc/self/status").read())[1]) * 1024

document = Document("a", tuple(range(60)))
torch.nn.functional.linear(torch.ones(8, 8), torch.ones(8, 8))
base = now()
engine = NativeEngine.load(sys.argv[1], device="cpu", offload=sys.argv[2] == "offload")
loaded = now()
if sys.argv[2] == "offload":
    engine.score([document], [Pattern("FS" * 6)])
print(json.dumps({"loaded": loaded - base, "peak": now("VmHWM") - base}))
"""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """(folder, bytes of the model in float32, bytes of a layer in float32); bfloat16 on disk."""
    folder = tmp_path_factory.mktemp("large")
    config = DsaConfig.from_json(CONFIG)
    weight_map, sizes = {}, []
    for layer in range(LAYERS):
        shapes = layer_shapes(config, layer, True)
        named = {f"model.layers.{layer}.{k}": shape for k, shape in shapes.items()}
        sizes.append(sum(torch.Size(shape).numel() for shape in shapes.values()) * 4)
        weight_map |= write(folder, f"{layer}.safetensors", named)
    weight_map |= write(folder, "top.safetensors", top_shapes(config))
    index = json.dumps({"weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(index)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder, sum(sizes), max(sizes)


def write(folder, file, shapes):
    tensors = {k: (torch.randn(s) * s[-1] ** -0.5).bfloat16() for k, s in shapes.items()}
    save_file(tensors, folder / file)
    return dict.fromkeys(tensors, file)


def measured(folder, mode):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), mode],
        # Or the allocator keeps up to 64 MB of what was freed, sometimes.
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_loading_takes_at_most_a_layer_beyond_the_model(checkpoint):
    folder, model, layer = checkpoint
    seen = measured(folder, "resident")
    print(seen, model, layer)
    assert model > 500e6
    assert model * 0.98 < seen["loaded"]
    assert seen["peak"] - model < layer


def test_offload_takes_little_more_than_two_layers(checkpoint):
    """The layer in work, in float32, and the next one, in bfloat16 as it is read."""
    folder, model, layer = checkpoint
    seen = measured(folder, "offload")
    print(seen, model, layer)
    assert seen["loaded"] < layer
    assert seen["peak"] < 3 * layer < model / 3
