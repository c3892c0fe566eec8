"""The shape of a DSA model, read from a checkpoint's `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ixsearch.patterns.findings import clip
from ixsearch.runtime.config_checks import check_supported
from ixsearch.runtime.config_values import ConfigError, Values, is_number
from ixsearch.runtime.rope_config import RopeConfig, read_rope

MODEL_TYPES = ("deepseek_v32", "glm_moe_dsa")
MAX_LAYERS = 1000
MAX_MTP_LAYERS = 16
MAX_EXPERTS = 50_000
"""Of all layers together. The largest published models have 20,000; each is several names to look
for, so that a number that is no model's would only fill memory."""
EPS = (0.0, 0.1)
"""Of a norm."""

_SIZES = (
    "vocab_size",
    "hidden_size",
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

    def is_moe(self, layer: int) -> bool:
        """Whether a layer has experts; MTP layers, from `num_hidden_layers` on, do if any has."""
        return layer in self.moe_layers or bool(self.moe_layers and layer >= self.num_hidden_layers)

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
        values = Values(data, where)
        model_type = _model_type(values)
        layers = values.whole("num_hidden_layers", most=MAX_LAYERS)
        sizes = {key: values.whole(key) for key in _SIZES}
        moe_layers = _moe_layers(values, layers)
        experts = {key: values.whole(key) for key in _EXPERT_SIZES} if moe_layers else {}
        eps = values.number("rms_norm_eps", 1e-6, *EPS)
        interleaved = values.flag("indexer_rope_interleave", model_type == "glm_moe_dsa")
        config = cls(
            model_type=model_type,
            num_hidden_layers=layers,
            **sizes,
            **experts,
            index_rope_layout="interleaved" if interleaved else "half",
            rms_norm_eps=eps,
            latent_norm_eps=eps if latent_norm_eps is None else _checked_eps(latent_norm_eps),
            rope=read_rope(values),
            moe_layers=moe_layers,
            tie_word_embeddings=values.flag("tie_word_embeddings", False),
            routed_scaling_factor=values.number("routed_scaling_factor", 1.0, 1e-6, 1e6),
            norm_topk_prob=values.flag("norm_topk_prob", True),
            num_nextn_predict_layers=values.whole(
                "num_nextn_predict_layers", 0, least=0, most=MAX_MTP_LAYERS
            ),
        )
        check_supported(values, config)
        return config


def _model_type(values: Values) -> str:
    found = values.get("model_type")
    if found not in MODEL_TYPES:
        raise values.error(
            f"model_type is {clip(found)}: ixsearch runs models with DeepSeek Sparse Attention"
            f" ({', '.join(MODEL_TYPES)})"
        )
    return found


def _checked_eps(eps: float) -> float:
    """Of the latent norms, as the caller gives it."""
    if not is_number(eps) or not EPS[0] <= eps <= EPS[1]:
        raise ConfigError(
            f"latent_norm_eps is {clip(eps)}: a number from {EPS[0]} to {EPS[1]} is needed"
        )
    return float(eps)


def _moe_layers(values: Values, num_layers: int) -> frozenset[int]:
    types = values.words_by_layer("mlp_layer_types", ("dense", "sparse"), num_layers)
    first = values.whole("first_k_dense_replace", 0, least=0)
    every = values.whole("moe_layer_freq", 1)
    experts = values.whole("n_routed_experts", 0, least=0)
    if types is not None:
        found = frozenset(i for i, kind in enumerate(types) if kind == "sparse")
    elif not experts:
        found = frozenset()
    else:
        found = frozenset(i for i in range(first, num_layers) if i % every == 0)
    if len(found) * experts > MAX_EXPERTS:
        raise values.error(
            f"n_routed_experts is {experts} in each of {len(found)} layers: at most {MAX_EXPERTS}"
            " experts in all can be run"
        )
    return found
