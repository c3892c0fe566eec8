"""Convert a checkpoint of the training workshop to the model folder that ships in the package.

    python scripts/convert_bundled.py drop.safetensors ixsearch/bundled

Writes config.json, generation_config.json, model.safetensors, tokenizer.json and
tokenizer_config.json. The same checkpoint gives the same bytes. The model card is written by hand.

Names become those of `DeepseekV32ForCausalLM`. Values stay as they are, but for one change of
order: the workshop rotates dims i and i + 16 of MLA's 32 rotary dims together, the format dims
2i and 2i + 1, so the rows that make these dims are interleaved. The indexer keeps its halves,
which is what the format asks for there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors

from ixsearch.tasks.words import BOS, NEWLINE, PAD, VOCABULARY

LAYERS, HEADS, NOPE, ROPE, KV_LORA = 16, 4, 32, 32, 96

CONFIG: dict[str, Any] = {
    "architectures": ["DeepseekV32ForCausalLM"],
    "model_type": "deepseek_v32",
    "dtype": "bfloat16",
    "vocab_size": len(VOCABULARY),
    "hidden_size": 256,
    "num_hidden_layers": LAYERS,
    "num_nextn_predict_layers": 0,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "q_lora_rank": 128,
    "kv_lora_rank": KV_LORA,
    "qk_nope_head_dim": NOPE,
    "qk_rope_head_dim": ROPE,
    "v_head_dim": 64,
    "attention_bias": False,
    "index_n_heads": 4,
    "index_head_dim": 32,
    "index_rope_head_dim": 16,
    "index_topk": 48,
    "hidden_act": "silu",
    "intermediate_size": 640,
    # Every layer is dense; loaders read the keys of the experts all the same.
    "first_k_dense_replace": LAYERS,
    "moe_layer_freq": 1,
    "moe_intermediate_size": 64,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "norm_topk_prob": True,
    "routed_scaling_factor": 1.0,
    "scoring_func": "sigmoid",
    "topk_method": "noaux_tc",
    "rms_norm_eps": 1e-6,
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
    # Trained on 768; the rest is room to answer behind a full document.
    "max_position_embeddings": 1024,
    "tie_word_embeddings": False,
    "pad_token_id": VOCABULARY.index(PAD),
    "bos_token_id": VOCABULARY.index(BOS),
    "eos_token_id": VOCABULARY.index(NEWLINE),
}
TOKENS = {key: CONFIG[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")}
GENERATION_CONFIG = {**TOKENS, "do_sample": False}
# Newline stays an ordinary token here: a special one would be left out of decoded text.
TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": BOS,
    "pad_token": PAD,
    "clean_up_tokenization_spaces": False,
    "model_max_length": CONFIG["max_position_embeddings"],
}

NAMES = {
    "n1": "input_layernorm.weight",
    "n2": "post_attention_layernorm.weight",
    "q_a": "self_attn.q_a_proj.weight",
    "nq": "self_attn.q_a_layernorm.weight",
    "q_b": "self_attn.q_b_proj.weight",
    "kv_a": "self_attn.kv_a_proj_with_mqa.weight",
    "nkv": "self_attn.kv_a_layernorm.weight",
    "kv_b": "self_attn.kv_b_proj.weight",
    "o": "self_attn.o_proj.weight",
    "ix_q": "self_attn.indexer.wq_b.weight",
    "ix_k": "self_attn.indexer.wk.weight",
    "ix_g": "self_attn.indexer.k_norm.weight",
    "ix_b": "self_attn.indexer.k_norm.bias",
    "ix_w": "self_attn.indexer.weights_proj.weight",
    "w2": "mlp.down_proj.weight",
}


def interleave(rows: torch.Tensor) -> torch.Tensor:
    """Rows (first half, second half) in the order first, second, first, second, ..."""
    first, second = rows.chunk(2)
    return torch.stack((first, second), 1).flatten(0, 1)


def interleave_queries(weight: torch.Tensor) -> torch.Tensor:
    """`q_b_proj`: the rotary rows stand last in each head."""
    heads = weight.unflatten(0, (HEADS, NOPE + ROPE))
    rows = [torch.cat((head[:NOPE], interleave(head[NOPE:]))) for head in heads]
    return torch.cat(rows)


def interleave_key(weight: torch.Tensor) -> torch.Tensor:
    """`kv_a_proj_with_mqa`: the rows of the one rotary key stand last."""
    return torch.cat((weight[:KV_LORA], interleave(weight[KV_LORA:])))


def convert_layer(source: Any, layer: int) -> dict[str, torch.Tensor]:
    """The tensors of one layer, renamed and reordered."""
    prefix = f"model.layers.{layer}."
    tensors = {
        prefix + new: source.get_tensor(f"blocks.{layer}.{old}") for old, new in NAMES.items()
    }
    for name, reorder in (("q_b", interleave_queries), ("kv_a", interleave_key)):
        tensors[prefix + NAMES[name]] = reorder(tensors[prefix + NAMES[name]])
    gate, up = source.get_tensor(f"blocks.{layer}.w13").chunk(2)
    tensors[prefix + "mlp.gate_proj.weight"] = gate
    tensors[prefix + "mlp.up_proj.weight"] = up
    return tensors


def convert_weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    """All tensors in bfloat16, under the format's names."""
    with safe_open(checkpoint, framework="pt") as source:
        tensors = {
            "model.embed_tokens.weight": source.get_tensor("emb"),
            "model.norm.weight": source.get_tensor("nf"),
            "lm_head.weight": source.get_tensor("head"),
        }
        for layer in range(LAYERS):
            tensors |= convert_layer(source, layer)
    return {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in tensors.items()}


def build_tokenizer() -> Tokenizer:
    """Words between spaces, newlines, and numbers digit by digit; decoding joins the digits.

    A word outside the vocabulary is an error: the language has none, so there is no `<unk>`.
    """
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}))
    tokenizer.add_special_tokens([AddedToken(word, special=True) for word in (PAD, BOS)])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(NEWLINE, "isolated"),
            pre_tokenizers.Split(Regex(" +"), "removed"),
            pre_tokenizers.Digits(individual_digits=True),
        ]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, VOCABULARY.index(BOS))]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            # Puts a space before all tokens but the first; no token begins with this prefix.
            decoders.WordPiece(prefix="<join>", cleanup=False),
            decoders.Fuse(),
            decoders.Replace(Regex("(?<=[0-9]) (?=[0-9])"), ""),
            decoders.Replace(Regex(" ?\n ?"), NEWLINE),
        ]
    )
    return tokenizer


def write_json(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    write_json(args.out / "config.json", CONFIG)
    write_json(args.out / "generation_config.json", GENERATION_CONFIG)
    write_json(args.out / "tokenizer_config.json", TOKENIZER_CONFIG)
    build_tokenizer().save(str(args.out / "tokenizer.json"))
    weights = save(convert_weights(args.checkpoint), metadata={"format": "pt"})
    (args.out / "model.safetensors").write_bytes(weights)


if __name__ == "__main__":
    main()
