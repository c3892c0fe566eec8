"""Rotary positions as a configuration has them, with YaRN."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ixsearch.patterns.findings import clip
from ixsearch.runtime.config_values import Values

TYPES = ("default", "yarn")
_PLACES = ("rope_parameters", "rope_scaling")
"""Of transformers from version 5 on, and of all before."""
_KEYS = ("rope_theta", "rope_type", "partial_rotary_factor")
_YARN_KEYS = (
    "factor",
    "original_max_position_embeddings",
    "beta_fast",
    "beta_slow",
    "mscale",
    "mscale_all_dim",
    "attention_factor",
    "truncate",
)


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
    truncate: bool = True
    """Whether the blend of frequencies begins and ends at whole pairs."""

    @property
    def table_scale(self) -> float:
        """What cos and sin are multiplied by."""
        if self.attention_factor is not None:
            return self.attention_factor
        if self.factor <= 1:
            return 1.0
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
    """From `rope_parameters` (transformers 5), or `rope_theta` and `rope_scaling`.

    Raises:
        ConfigError: a type or key that this runtime does not have, or a value out of its range.
    """
    rope = _gathered(values)
    kind = rope.word("rope_type", TYPES)
    _check_keys(rope, _KEYS if kind == "default" else (*_KEYS, *_YARN_KEYS), kind)
    _check_whole_head(values)
    _check_whole_head(rope)
    theta = rope.number("rope_theta", _theta(values), 1.001, 1e15)
    return RopeConfig(theta) if kind == "default" else _yarn(rope, theta, values)


def _theta(values: Values) -> float:
    return values.number("rope_theta", 10000.0, 1.001, 1e15)


def _gathered(values: Values) -> Values:
    """What either place has; `type` is the old name of `rope_type`."""
    found: dict[str, Any] = {}
    inside = ""
    for place in _PLACES:
        part = values.part(place)
        for key, value in _renamed(part.data).items():
            if value is None:
                continue
            if key in found and found[key] != value:
                raise values.error(
                    f"{_PLACES[0]} and {_PLACES[1]} have different {clip(key)}: take out one"
                )
            found[key] = value
        inside = inside or (place if part.data else "")
    return Values(found, values.where, inside or _PLACES[0])


def _renamed(given: Mapping[str, Any]) -> dict[str, Any]:
    known = dict(given)
    old = known.pop("type", None)
    if known.get("rope_type") is None:
        known["rope_type"] = old
    return known


def _check_keys(rope: Values, known: tuple[str, ...], kind: str) -> None:
    """A key that is not followed could mean other angles, so another model."""
    for key, value in rope.data.items():
        if isinstance(value, Mapping):
            raise rope.error(
                f"{rope.inside} has {clip(key)} with keys of its own: all layers of a DSA model"
                f" rotate alike, write them in {rope.inside} itself"
            )
        if key not in known:
            raise rope.error(
                f"{rope.inside} has {clip(key)} beside rope_type {kind}, which knows"
                f" {', '.join(known)}: take it out if the model was trained without it"
            )


def _check_whole_head(values: Values) -> None:
    if values.number("partial_rotary_factor", 1.0, 0, 1) != 1:
        raise values.wrong("partial_rotary_factor", "1 can be run: qk_rope_head_dim says the dims")


def _yarn(rope: Values, theta: float, values: Values) -> RopeConfig:
    positions = values.whole("max_position_embeddings")
    original = rope.whole("original_max_position_embeddings", positions)
    fast = rope.number("beta_fast", 32.0, 1e-6, 1e6)
    slow = rope.number("beta_slow", 1.0, 1e-6, 1e6)
    if fast < slow:
        raise rope.wrong("beta_fast", f"at least beta_slow, {slow:g}, is needed")
    optional = {
        key: None if rope.get(key) is None else rope.number(key, 0.0, least, 1e3)
        for key, least in (("mscale", 0), ("mscale_all_dim", 0), ("attention_factor", 1e-6))
    }
    return RopeConfig(
        theta=theta,
        factor=rope.number("factor", max(1.0, positions / original), 1, 1e6),
        original_positions=original,
        beta_fast=fast,
        beta_slow=slow,
        truncate=rope.flag("truncate", True),
        **optional,
    )
