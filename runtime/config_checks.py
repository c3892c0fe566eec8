"""What a configuration may ask for that this runtime does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ixsearch.patterns.dialects.keys import PATTERN_KEYS
from ixsearch.patterns.findings import clip
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
_WORDS = {"hidden_act": ("silu",), "scoring_func": ("sigmoid",), "topk_method": ("noaux_tc",)}
LAYER_TYPES = ("indexed_attention", "deepseek_sparse_attention")
"""transformers' names for a DSA layer, the new and the old one."""
INDEXER_KEYS = frozenset(
    (
        *PATTERN_KEYS,
        "index_topk",
        "index_n_heads",
        "index_head_dim",
        "indexer_rope_interleave",
        "index_share_for_mtp_iteration",
    )
)
_OTHER_MODELS = frozenset(("sliding_window", "compression_config"))


def check_supported(values: Values, config: DsaConfig) -> None:
    """Refuse what would silently run as another model. Raises `ConfigError`."""
    for key in ("attention_bias", "mlp_bias"):
        if values.flag(key, False):
            raise values.error(f"{key} is not supported: no DSA model has one")
    if not values.flag("rope_interleave", True):
        raise values.wrong("rope_interleave", "MLA of a DSA model rotates neighbouring dims: true")
    for key, known in _WORDS.items():
        values.word(key, known)
    # A shortened copy of a larger model may list the layers of all of it: they are alike.
    values.words_by_layer("layer_types", LAYER_TYPES)
    _check_keys(values)
    _check_quantisation(values)
    if config.qk_rope_head_dim > config.index_head_dim or config.qk_rope_head_dim % 2:
        raise values.error(
            f"qk_rope_head_dim is {config.qk_rope_head_dim}: an even number that fits in"
            f" index_head_dim, {config.index_head_dim}, is needed"
        )
    if config.moe_layers:
        _check_experts(values, config)


def _check_keys(values: Values) -> None:
    """Keys of another attention or indexer: without following them, another model would run."""
    for key, value in values.data.items():
        unknown = key.startswith(("index_", "indexer_")) and key not in INDEXER_KEYS
        if value is not None and (unknown or key in _OTHER_MODELS):
            raise values.error(
                f"{clip(key)} is {clip(value)}: this runtime has no such thing, and would run"
                " another model; take the key out if the model was trained without it"
            )


def _check_quantisation(values: Values) -> None:
    """FP8 weights in blocks are read as DeepSeek's own checkpoints have them, and no others.

    Which tensors are quantised, the files say; lists like modules_to_not_convert are not used.
    """
    given = values.part("quantization_config")
    if not given.data:
        return
    for key, wanted in _FP8.items():
        found = given.data.get(key, wanted[0])
        if found not in wanted:
            raise values.error(
                f"quantization_config has {key} {clip(found)}: weights in FP8 e4m3 with a scale for"
                " each block of 128 x 128 can be run; convert the checkpoint to bfloat16 first"
            )
    if "quant_method" not in given.data:
        raise values.error("quantization_config has no quant_method: fp8 can be run")
    if "weight_block_size" not in given.data:
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
