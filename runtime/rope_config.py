"""Rotary positions as a configuration has them, with YaRN."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ixsearch.runtime.config_values import Values


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


def read_rope(values: Values) -> RopeConfig:
    """From `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling`.

    Raises:
        ConfigError: a type that this runtime does not have, or no number where one is needed.
    """
    data = dict(values.data.get("rope_scaling") or {}) | dict(
        values.data.get("rope_parameters") or {}
    )
    own = Values(data, values.where)
    theta = own.number("rope_theta", values.number("rope_theta", 10000.0))
    kind = data.get("rope_type", data.get("type", "default"))
    if kind in ("default", None):
        return RopeConfig(theta)
    if kind != "yarn":
        raise values.error(f"rope type {kind!r}: default and yarn are known")
    positions = values.number("max_position_embeddings", 0)
    original = int(own.number("original_max_position_embeddings", positions))
    optional = {
        key: own.number(key, 0.0) if data.get(key) is not None else None
        for key in ("mscale", "mscale_all_dim", "attention_factor")
    }
    return RopeConfig(
        theta=theta,
        factor=own.number("factor", positions / max(original, 1)),
        original_positions=original,
        beta_fast=own.number("beta_fast", 32.0),
        beta_slow=own.number("beta_slow", 1.0),
        **optional,
    )
