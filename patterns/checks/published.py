"""What publications say about a pattern, or about one like it."""

from __future__ import annotations

from ixsearch.patterns.checks.model import own_pattern
from ixsearch.patterns.findings import Finding, Place
from ixsearch.patterns.model_config import ModelConfig
from ixsearch.patterns.pattern import Pattern
from ixsearch.patterns.presets import Published, published_patterns

FEW = 0.25
"""Retention below which published patterns lost quality."""

HALF = 0.55
"""Retention up to which published uniform patterns lost quality."""

SHORTEST_PIECE = 20
"""So many first letters in common are no accident."""


def check_published(
    pattern: Pattern, model: ModelConfig | None, place: Place | None = None
) -> list[Finding]:
    """Whether the pattern was published for another model, or is of a kind that lost quality."""
    known = [found for p in published_patterns() if (found := _check_one(pattern, p, model, place))]
    if known:
        return known[:1]
    if model is not None and own_pattern(model) == pattern:
        return []
    return [*_check_uniform(pattern, place), *_check_retention(pattern, place)]


def _check_one(
    pattern: Pattern, published: Published, model: ModelConfig | None, place: Place | None
) -> Finding | None:
    if pattern == published.pattern:
        if model is None or _fits(published, model):
            message = f"this is {published}: {published.source}"
            return Finding("IX214", message, place=place)
        message = f"this is {published}, not one for {model.architecture}"
    elif len(pattern) >= SHORTEST_PIECE and _is_piece(pattern, published.pattern):
        which = "begins with" if len(pattern) > len(published.pattern) else "is the beginning of"
        message = f"this {which} {published}"
    else:
        return None
    mend = "search a pattern for your model: `ixsearch optimize MODEL`"
    return Finding("IX208", message, mend, place)


def _fits(published: Published, model: ModelConfig) -> bool:
    return (
        len(published.pattern) == model.num_hidden_layers
        and published.architecture in ("", model.architecture)
        and own_pattern(model) == Pattern.all_full(model.num_hidden_layers)
    )


def _is_piece(one: Pattern, other: Pattern) -> bool:
    return one.letters.startswith(other.letters) or other.letters.startswith(one.letters)


def _check_uniform(pattern: Pattern, place: Place | None) -> list[Finding]:
    frequency = pattern.frequency()
    if frequency is None or len(pattern) < 8 or pattern.retention > HALF:
        return []
    message = f"the pattern is uniform: after its first F layers one in {frequency} is F"
    mend = "search one as fast: `ixsearch optimize MODEL`"
    return [Finding("IX210", message, mend, place)]


def _check_retention(pattern: Pattern, place: Place | None) -> list[Finding]:
    if pattern.retention >= FEW:
        return []
    message = (
        f"retention {pattern.retention:.2f}: {pattern.num_full} of {len(pattern)} layers are F"
    )
    mend = "measure it on long documents: `ixsearch evaluate MODEL --pattern ...`"
    return [Finding("IX209", message, mend, place)]
