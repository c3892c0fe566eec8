"""Greedy removal, Algorithm 1 of the IndexCache paper."""

from __future__ import annotations

from collections.abc import Iterator

from ixsearch.search.proposer import Ask, Problem


class Greedy:
    """From the fullest pattern, each round tries every F as S and keeps the best pattern.

    Goes down to the smallest budget and so passes through all of them. The best has the least
    divergence; of equal ones it shares the later layer.
    """

    name = "greedy"

    def asks(self, problem: Problem) -> Iterator[Ask]:
        current = problem.space.fullest
        while current.num_full > min(problem.budgets):
            candidates = problem.space.removals(current)
            yield Ask(candidates, near=[current])
            current = min(candidates, key=lambda p: (problem.scores.value(p), p))
