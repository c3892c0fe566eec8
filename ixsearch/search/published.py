"""Patterns that somebody published for a model with as many layers."""

from __future__ import annotations

from collections.abc import Iterator

from ixsearch.patterns.presets import published_patterns
from ixsearch.search.proposer import Ask, Problem


class Published:
    """Those that the space allows, on the first rung; on all documents where they have a wanted
    number of F.
    """

    name = "published"

    def asks(self, problem: Problem) -> Iterator[Ask]:
        known = dict.fromkeys(entry.pattern for entry in published_patterns())
        fitting = [pattern for pattern in known if problem.space.contains(pattern)]
        if not fitting:
            return
        yield Ask(fitting, problem.rungs[0])
        yield Ask([pattern for pattern in fitting if pattern.num_full in problem.budgets])
