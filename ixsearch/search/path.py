"""Shortest paths on pair costs: every budget's best guesses before anything is scored."""

from __future__ import annotations

from collections.abc import Iterator

from ixsearch.patterns import Pattern
from ixsearch.search.effects import Effects
from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.shortest_path import cheapest
from ixsearch.search.space import SearchSpace

GUESSES = 6
"""Patterns of a budget that are scored."""
SHORTLIST = 64
"""Shortest paths of which the jointly cheapest are looked for."""


class Path:
    """For each budget the patterns of least estimated cost, on the documents of the first rung.

    Half of them are the shortest paths on additive costs; the others are those among many short
    paths, improved swap by swap, whose joint cost is least.
    """

    name = "path"

    def __init__(self, guesses: int = GUESSES) -> None:
        self.guesses = guesses

    def asks(self, problem: Problem) -> Iterator[Ask]:
        effects = problem.effects()
        if effects is None:
            return
        wanted = [
            p for budget in problem.budgets for p in self.guess(effects, problem.space, budget)
        ]
        yield Ask(wanted, problem.rungs[0])

    def guess(self, effects: Effects, space: SearchSpace, budget: int) -> list[Pattern]:
        """The patterns to score of one budget, by estimated cost alone."""
        short = cheapest(effects.costs_LL, space, budget, SHORTLIST)
        lowest = descend(effects, space, min(short, key=lambda p: (effects.joint([p])[0], p)))
        joint = sorted([*short, lowest], key=lambda p: (effects.joint([p])[0], p))
        return list(dict.fromkeys((*short[: self.guesses // 2], *joint)))[: self.guesses]


def descend(effects: Effects, space: SearchSpace, start: Pattern) -> Pattern:
    """From a pattern, swap after swap, to one whose joint cost no swap lowers."""
    current, cost = start, float(effects.joint([start])[0])
    while moves := space.swaps(current):
        costs = effects.joint(moves)
        best = int(costs.argmin())
        if not costs[best] < cost:  # nor where costs are no numbers
            break
        current, cost = moves[best], float(costs[best])
    return current
