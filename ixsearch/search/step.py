"""One step of a guided way down: where it may lead, and whether that is good enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixsearch.patterns import Pattern
from ixsearch.search.effects import Effects
from ixsearch.search.gains import expected_falls
from ixsearch.search.proposer import Problem
from ixsearch.search.surrogate import Surrogate
from ixsearch.search.ways import ways

FALL = 0.4
"""Mean expected improvement of log divergence for which other ways are measured too."""
RISE = 1.0
"""Rise of log divergence with which a step of several layers was too long."""


@dataclass(frozen=True)
class Step:
    """From a pattern to fewer F layers."""

    problem: Problem
    start: Pattern
    num_full: int
    effects: Effects | None

    @property
    def is_blind(self) -> bool:
        """Does nothing say which way may be good?"""
        return self.effects is None and self._surrogate() is None

    def ways(self, most: int) -> list[Pattern]:
        """Those that are liked most, the best first; where it is blind, all removals of one."""
        space, guesser = self.problem.space, self._surrogate() or self.effects
        if guesser is None:
            return space.removals(self.start)
        return ways(space, self.start, self.num_full, guesser.guess, most)[0]

    def may_be_beaten(self, winner: Pattern, others: Sequence[Pattern]) -> bool:
        """Do others promise an improvement, by what is guessed and how unsure the guess is?"""
        surrogate, scores = self._surrogate(), self.problem.scores
        if surrogate is None:
            return True
        falls = expected_falls(scores, winner, surrogate.guess(others), surrogate.spread)
        return float(falls.mean()) > FALL

    def is_too_long(self, winner: Pattern) -> bool:
        """Would fewer layers at a time, chosen one after another, be better than this?"""
        scores = self.problem.scores
        return scores.coarse(winner) > scores.coarse(self.start) + RISE

    def _surrogate(self) -> Surrogate | None:
        """Of all that is measured by now."""
        return Surrogate.fit(self.problem.scores, self.num_full, self.effects)
