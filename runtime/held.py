"""States of scoring that are kept from one batch to the next."""

from __future__ import annotations

from collections.abc import Sequence

from ixsearch.patterns import Pattern
from ixsearch.runtime.state import State
from ixsearch.runtime.trie import Prefix, prefixes


class HeldStates:
    """Of each document the states of prefixes that patterns to come are likely to begin with."""

    def __init__(self, baseline: Pattern, room: int) -> None:
        """`room`: bytes that they may take; 0: nothing is kept."""
        self.room = room
        self._baseline = baseline
        self._wanted = set(prefixes(baseline.letters))
        self._states: dict[str, dict[Prefix, State]] = {}
        self.used = 0

    def keep_near(self, patterns: Sequence[Pattern]) -> None:
        """Keep states of these patterns' prefixes, and of the baseline's, from now on; drop others.

        Where room is short, the baseline's come first, then those that are computed first.
        """
        self._wanted = {p for each in (self._baseline, *patterns) for p in prefixes(each.letters)}
        for states in self._states.values():
            for prefix in [p for p in states if p not in self._wanted]:
                self.used -= states.pop(prefix).nbytes

    def of(self, document: str) -> dict[Prefix, State]:
        """What is kept of a document, by its digest."""
        return self._states.get(document, {})

    def wants(self, prefix: Prefix) -> bool:
        """Would it be kept, if there is room?"""
        return self.room > 0 and prefix in self._wanted

    def offer(self, document: str, prefix: Prefix, state: State) -> None:
        """Keep it, if it is wanted and there is room."""
        if not self.wants(prefix) or self.used + state.nbytes > self.room:
            return
        if prefix not in self._states.setdefault(document, {}):
            self._states[document][prefix] = state
            self.used += state.nbytes

    def clear(self) -> None:
        """Give all memory back."""
        self._states.clear()
        self.used = 0
