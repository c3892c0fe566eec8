"""Files and checkpoints with nothing wrong, of which tests make worse ones."""

from __future__ import annotations

import json
import struct
from typing import Any

LETTERS = "FFSSFSSS"
CONFIG: dict[str, Any] = {
    "architectures": ["DeepseekV32ForCausalLM"],
    "model_type": "deepseek_v32",
    "num_hidden_layers": 8,
    "num_nextn_predict_layers": 1,
    "index_topk": 2048,
}
GLM = CONFIG | {"architectures": ["GlmMoeDsaForCausalLM"], "model_type": "glm_moe_dsa"}
TYPES = ["full" if letter == "F" else "shared" for letter in LETTERS]
NAMES = [f"model.layers.{i}.self_attn.indexer.wk.weight" for i in range(9)]
INDEX = json.dumps({"weight_map": dict.fromkeys(NAMES, "model-00001-of-00001.safetensors")})


def header(names: list[str]) -> bytes:
    parts = {name: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for name in names}
    data = json.dumps({"__metadata__": {"format": "pt"}} | parts).encode()
    return struct.pack("<Q", len(data)) + data


GOOD: dict[str, str] = {
    "pattern.yaml": """\
# a comment
schema: 1
pattern: "FFSSFSSS"

model:
  architecture: DeepseekV32ForCausalLM
  num_hidden_layers: 8
  model_type: deepseek_v32
  config_hash: "0123456789abcdef"
provenance:
  tool_version: "1.0.0"
  date: "2026-08-01"
  seed: 3
  documents:
    - {role: test, source: "a", count: 1, tokens: 20, digest: "b"}
  scores: {perplexity: 1.5, "retained share": 0.5}
""",
    "vllm.yaml": "hf-overrides:\n  use_index_cache: true\n  index_topk_pattern: FFSSFSSS\ntp: 1\n",
    "vllm_json.yaml": 'hf-overrides: \'{"index_topk_pattern": "FFSSFSSS", "rope_theta": 1e6}\'\n',
    "vllm_dotted.yaml": "model: x\nhf-overrides.index_topk_pattern: FFSSFSSS\n"
    "hf-overrides.text_config.index_topk_freq: 2\n",
    "vllm_underscore.yml": "hf_overrides: {text_config: {index_topk_freq: 4, model_type: x}}\n",
    "sglang.yaml": 'json-model-override-args: \'{"index_topk_pattern": "FFSSFSSS"}\'\ntp: 8\n',
    "sglang_map.yaml": "json_model_override_args:\n  indexer_types: [full, shared, full]\n",
    "tensorrt.yaml": "model_kwargs:\n  index_topk_pattern: 'FFSSFSSS'\n  text_config: {a: 1}\n",
    "bare.yaml": "index_topk_freq: 4\nindex_skip_topk_offset: 3\nuse_index_cache: yes\n",
    "letters.txt": "FFSSFSSS\n",
    "overrides.json": json.dumps(
        {"use_index_cache": True, "index_topk_pattern": LETTERS}, indent=1
    ),
    "types.json": json.dumps({"indexer_types": TYPES, "text_config": {"index_topk_freq": 2}}),
    "config.json": json.dumps(CONFIG | {"index_topk_freq": 4}, indent=2),
    "glm.json": json.dumps(GLM | {"indexer_types": TYPES, "index_topk_pattern": LETTERS}),
    "nested.json": json.dumps(
        {"architectures": ["A"], "text_config": GLM | {"index_topk_pattern": LETTERS}}, indent=2
    ),
}
