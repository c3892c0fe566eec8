"""The shape of a DSA model, read from a checkpoint's `config.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ixsearch.patterns import ModelError

MODEL_TYPES = ("deepseek_v32", "glm_moe_dsa")

_SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
    "intermediate_size",
    "index_n_heads",
    "index_head_dim",
    "index_topk",
    "max_position_embeddings",
)
_EXPERT_SIZES = (
    "moe_intermediate_size",
    "n_routed_experts",
    "n_shared_experts",
    "num_experts_per_tok",
    "n_group",
    "topk_group",
)


class ConfigError(ModelError):
    """A configuration that this runtime cannot run."""


@dataclass(frozen=True)
class RopeConfig:
    """Rotary frequencies. `factor` above 1 switches YaRN on."""

    theta: float
    factor: float = 1.0
    original_positions: int = 0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    mscale: float | None = None
    mscale_all_dim: float | None = None
    attention_factor: float | None = None

    @property
    def table_scale(self) -> float:
        """What cos and sin are multiplied by."""
        if self.factor <= 1:
            return 1.0
        if self.attention_factor is not None:
            return self.attention_factor
        if self.mscale and self.mscale_all_dim:
            return _mscale(self.factor, self.mscale) / _mscale(self.factor, self.mscale_all_dim)
        return _mscale(self.factor, 1.0)

    @property
    def softmax_scale(self) -> float:
        """What MLA's softmax scale is multiplied by; the indexer's is not."""
        if self.factor <= 1 or not self.mscale_all_dim:
            return 1.0
        return _mscale(self.factor, self.mscale_all_dim) ** 2


def _mscale(factor: float, weight: float) -> float:
    return 0.1 * weight * math.log(factor) + 1.0


@dataclass(frozen=True)
class DsaConfig:
    """Dimensions and switches of one model; the names are those of `config.json`."""

    model_type: str
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    intermediate_size: int
    index_n_heads: int
    index_head_dim: int
    index_topk: int
    index_rope_layout: str
    """`half` or `interleaved`; the indexer rotates the first `qk_rope_head_dim` dims of a head."""
    max_position_embeddings: int
    rms_norm_eps: float
    latent_norm_eps: float
    """Of the norms on the query and key/value latents. Engines use `rms_norm_eps` there,
    transformers 1e-6 always; they differ for GLM."""
    rope: RopeConfig
    moe_layers: frozenset[int]
    tie_word_embeddings: bool = False
    moe_intermediate_size: int = 0
    n_routed_experts: int = 0
    n_shared_experts: int = 0
    num_experts_per_tok: int = 0
    n_group: int = 1
    topk_group: int = 1
    routed_scaling_factor: float = 1.0
    norm_topk_prob: bool = True
    num_nextn_predict_layers: int = 0
    """MTP layers that the configuration promises; they are not among `num_hidden_layers`."""

    @property
    def softmax_scale(self) -> float:
        """MLA: (nope + rope)^-0.5, times YaRN's mscale squared."""
        return (self.qk_nope_head_dim + self.qk_rope_head_dim) ** -0.5 * self.rope.softmax_scale

    @property
    def latent_width(self) -> int:
        """Values a token in the latent cache."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    @classmethod
    def from_json(
        cls,
        data: Mapping[str, Any],
        where: str = "config.json",
        latent_norm_eps: float | None = None,
    ) -> DsaConfig:
        """Read a parsed `config.json`.

        Raises:
            ConfigError: not a DSA model, a key is missing or has no usable value, or a feature is
                asked for that this runtime does not have.
        """
        reader = _Reader(data, where)
        model_type = reader.model_type()
        sizes = {key: reader.size(key) for key in _SIZES}
        moe_layers = reader.moe_layers(sizes["num_hidden_layers"])
        experts = {key: reader.size(key) for key in _EXPERT_SIZES} if moe_layers else {}
        eps = reader.number("rms_norm_eps", 1e-6)
        interleaved = data.get("indexer_rope_interleave", model_type == "glm_moe_dsa")
        config = cls(
            model_type=model_type,
            **sizes,
            **experts,
            index_rope_layout="interleaved" if interleaved else "half",
            rms_norm_eps=eps,
            latent_norm_eps=eps if latent_norm_eps is None else latent_norm_eps,
            rope=reader.rope(),
            moe_layers=moe_layers,
            tie_word_embeddings=bool(data.get("tie_word_embeddings", False)),
            routed_scaling_factor=reader.number("routed_scaling_factor", 1.0),
            norm_topk_prob=bool(data.get("norm_topk_prob", True)),
            num_nextn_predict_layers=int(reader.number("num_nextn_predict_layers", 0)),
        )
        reader.check(config)
        return config


class _Reader:
    """Takes typed values out of a parsed `config.json`, with errors that name key and file."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self.data = data
        self.where = where

    def error(self, message: str) -> ConfigError:
        return ConfigError(f"{self.where}: {message}")

    def model_type(self) -> str:
        found = self.data.get("model_type")
        if found not in MODEL_TYPES:
            raise self.error(
                f"model_type is {found!r}: ixsearch runs models with DeepSeek Sparse Attention"
                f" ({', '.join(MODEL_TYPES)})"
            )
        return found

    def size(self, key: str) -> int:
        value = self.data.get(key)
        if value is None:
            raise self.error(f"{key} is missing")
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.error(f"{key} is {value!r}: a whole number above 0 is needed")
        return value

    def number(self, key: str, default: float, data: Mapping[str, Any] | None = None) -> float:
        value = (self.data if data is None else data).get(key)
        if value is None:
            return default
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.error(f"{key} is {value!r}: a number is needed")
        return float(value)

    def moe_layers(self, num_layers: int) -> frozenset[int]:
        types = self.data.get("mlp_layer_types")
        if types is not None:
            if len(types) != num_layers:
                raise self.error(
                    f"mlp_layer_types has {len(types)} entries for {num_layers} layers"
                )
            return frozenset(i for i, kind in enumerate(types) if kind == "sparse")
        if not self.data.get("n_routed_experts"):
            return frozenset()
        first = int(self.number("first_k_dense_replace", 0))
        every = max(1, int(self.number("moe_layer_freq", 1)))
        return frozenset(i for i in range(first, num_layers) if i % every == 0)

    def rope(self) -> RopeConfig:
        """From `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling`."""
        data = dict(self.data.get("rope_scaling") or {}) | dict(
            self.data.get("rope_parameters") or {}
        )
        theta = self.number("rope_theta", self.number("rope_theta", 10000.0), data)
        kind = data.get("rope_type", data.get("type", "default"))
        if kind in ("default", None):
            return RopeConfig(theta)
        if kind != "yarn":
            raise self.error(f"rope type {kind!r}: default and yarn are known")
        positions = self.number("max_position_embeddings", 0)
        original = int(self.number("original_max_position_embeddings", positions, data))
        optional = {
            key: self.number(key, 0.0, data) if data.get(key) is not None else None
            for key in ("mscale", "mscale_all_dim", "attention_factor")
        }
        return RopeConfig(
            theta=theta,
            factor=self.number("factor", positions / max(original, 1), data),
            original_positions=original,
            beta_fast=self.number("beta_fast", 32.0, data),
            beta_slow=self.number("beta_slow", 1.0, data),
            **optional,
        )

    def check(self, config: DsaConfig) -> None:
        if self.data.get("attention_bias") or self.data.get("mlp_bias"):
            raise self.error("attention_bias and mlp_bias are not supported: no DSA model has them")
        if self.data.get("quantization_config"):
            raise self.error(
                "quantization_config is set: quantised weights cannot be run yet; convert the"
                " checkpoint to bfloat16 first"
            )
        if self.data.get("hidden_act", "silu") != "silu":
            raise self.error(f"hidden_act is {self.data['hidden_act']!r}: silu is supported")
        if self.data.get("scoring_func", "sigmoid") != "sigmoid":
            raise self.error(f"scoring_func is {self.data['scoring_func']!r}: sigmoid is supported")
        if config.qk_rope_head_dim > config.index_head_dim or config.qk_rope_head_dim % 2:
            raise self.error(
                f"qk_rope_head_dim is {config.qk_rope_head_dim}: an even number that fits in"
                f" index_head_dim, {config.index_head_dim}, is needed"
            )
        if config.moe_layers:
            self._check_experts(config)

    def _check_experts(self, config: DsaConfig) -> None:
        groups, experts = config.n_group, config.n_routed_experts
        if experts % groups or experts // groups < 2:
            raise self.error(f"{experts} experts in {groups} groups: 2 or more a group are needed")
        chosen = experts // groups * config.topk_group
        if config.topk_group > groups or config.num_experts_per_tok > chosen:
            raise self.error(
                f"num_experts_per_tok {config.num_experts_per_tok} from topk_group"
                f" {config.topk_group} of {groups} groups: {chosen} experts can be chosen"
            )
