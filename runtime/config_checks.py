"""What a configuration may ask for that this runtime does not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ixsearch.runtime.config_values import Values

if TYPE_CHECKING:
    from ixsearch.runtime.config import DsaConfig

_FP8: dict[str, tuple[Any, ...]] = {
    "quant_method": ("fp8",),
    "fmt": ("e4m3",),
    "weight_block_size": ([128, 128],),
    "activation_scheme": ("dynamic",),
}
"""What `quantization_config` may say. The first is assumed where a key is absent."""


def check_supported(values: Values, config: DsaConfig) -> None:
    """Refuse what would silently run as another model. Raises `ConfigError`."""
    if values.data.get("attention_bias") or values.data.get("mlp_bias"):
        raise values.error("attention_bias and mlp_bias are not supported: no DSA model has them")
    _check_quantisation(values)
    if values.data.get("hidden_act", "silu") != "silu":
        raise values.error(f"hidden_act is {values.data['hidden_act']!r}: silu is supported")
    if values.data.get("scoring_func", "sigmoid") != "sigmoid":
        raise values.error(f"scoring_func is {values.data['scoring_func']!r}: sigmoid is supported")
    if config.qk_rope_head_dim > config.index_head_dim or config.qk_rope_head_dim % 2:
        raise values.error(
            f"qk_rope_head_dim is {config.qk_rope_head_dim}: an even number that fits in"
            f" index_head_dim, {config.index_head_dim}, is needed"
        )
    if config.moe_layers:
        _check_experts(values, config)


def _check_quantisation(values: Values) -> None:
    """FP8 weights in blocks are read as DeepSeek's own checkpoints have them, and no others.

    Which tensors are quantised, the files say; lists like modules_to_not_convert are not used.
    """
    given = values.data.get("quantization_config")
    if not given:
        return
    if not isinstance(given, Mapping):
        raise values.error(f"quantization_config is {given!r}: an object is needed")
    for key, wanted in _FP8.items():
        found = given.get(key, wanted[0])
        if found not in wanted:
            raise values.error(
                f"quantization_config has {key} {found!r}: weights in FP8 e4m3 with a scale for"
                " each block of 128 x 128 can be run; convert the checkpoint to bfloat16 first"
            )
    if "quant_method" not in given:
        raise values.error("quantization_config has no quant_method: fp8 can be run")
    if "weight_block_size" not in given:
        raise values.error(
            "quantization_config has no weight_block_size: FP8 with one scale a tensor or a"
            " channel cannot be run; convert the checkpoint to bfloat16 first"
        )


def _check_experts(values: Values, config: DsaConfig) -> None:
    groups, experts = config.n_group, config.n_routed_experts
    if experts % groups or experts // groups < 2:
        raise values.error(f"{experts} experts in {groups} groups: 2 or more a group are needed")
    chosen = experts // groups * config.topk_group
    if config.topk_group > groups or config.num_experts_per_tok > chosen:
        raise values.error(
            f"num_experts_per_tok {config.num_experts_per_tok} from topk_group"
            f" {config.topk_group} of {groups} groups: {chosen} experts can be chosen"
        )
