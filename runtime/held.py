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
        self._baseline = prefixes(baseline.letters)
        self._wanted = set(self._baseline)
        self._states: dict[str, dict[Prefix, State]] = {}
        self.used = 0

    def keep_near(self, patterns: Sequence[Pattern]) -> None:
        """Keep states of these patterns' prefixes, and of the baseline's, from now on; drop others.

        Where room is short, a document's own baseline comes first, then what is computed first.
        """
        others = (p for pattern in patterns for p in prefixes(pattern.letters))
        self._wanted = {*self._baseline, *others}
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
        if not self.wants(prefix) or prefix in self.of(document):
            return
        if self.used + state.nbytes + self._reserved(document, prefix, state) <= self.room:
            self._states.setdefault(document, {})[prefix] = state
            self.used += state.nbytes

    def _reserved(self, document: str, prefix: Prefix, state: State) -> int:
        """Bytes of the document's baseline that are still to come, for which others make way."""
        if prefix in self._baseline:
            return 0
        return state.nbytes * sum(p not in self.of(document) for p in self._baseline)

    def give_way(self) -> bool:
        """Memory ran out: give all back, and from now on take half of that at most. False if there
        was nothing to give.
        """
        found = self.used > 0
        if found:
            self.room = self.used // 2
        self.clear()
        return found

    def clear(self) -> None:
        """Give all memory back."""
        self._states.clear()
        self.used = 0
