"""All kinds of findings, by code: data, from which the checks, `explain` and the docs take them."""

from __future__ import annotations

from ixsearch.patterns.rules import engine, files, keys, letters, model
from ixsearch.patterns.rules.rule import Example, Level, Rule

RULES = {rule.code: rule for part in (files, letters, model, keys, engine) for rule in part.RULES}

__all__ = ["RULES", "Example", "Level", "Rule"]
