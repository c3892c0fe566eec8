"""What was read, whatever its format: keys of a pattern, where they stand, and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ixsearch.patterns.dialects.keys import NEST, gather
from ixsearch.patterns.findings import Finding, Place
from ixsearch.patterns.model_config import ModelConfig
from ixsearch.patterns.pattern_file import PatternFile


@dataclass(frozen=True)
class Spot:
    """Where a key stands, and where its value's first letter does, if it is written as it is."""

    key: Place
    letters: Place | None = None
    count: int = 0
    """So many letters stand there."""

    def letter(self, layer: int) -> Place:
        if self.letters is None or layer >= self.count:
            return self.key
        return replace(self.letters, column=self.letters.column + layer)


@dataclass(frozen=True)
class Reading:
    """The keys of a pattern that a file, a folder or an argument sets."""

    source: str
    format: str
    """Its name, for people."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """What it would put over a model's config.json."""
    config: ModelConfig | None = None
    """The model, where the thing read is its configuration."""
    pattern_file: PatternFile | None = None
    engine: str = ""
    """The one engine that reads this format."""
    portable: bool = False
    """Letters alone: every engine gets them in the spelling that it reads."""
    mapping: bool = False
    """A config file of an engine that has its overrides as a mapping, not as a JSON string."""
    spots: Mapping[str, Spot] = field(default_factory=dict)
    """By key."""
    findings: tuple[Finding, ...] = ()

    @cached_property
    def keys(self) -> Mapping[str, Any]:
        """The pattern's keys that the thing read sets itself, on whichever level they stand."""
        if self.config is not None:
            return dict(gather(self.config.values, {}).config)
        top = gather({"num_hidden_layers": 0}, self.overrides)
        nested = gather({NEST: {"num_hidden_layers": 0}}, self.overrides)
        return {**nested.overrides, **top.overrides}

    def place(self, key: str) -> Place | None:
        spot = self.spots.get(key)
        return spot.key if spot else None

    def letter_place(self, key: str, layer: int) -> Place | None:
        spot = self.spots.get(key)
        return spot.letter(layer) if spot else None
