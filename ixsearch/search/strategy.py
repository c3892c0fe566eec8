"""The searches that the command line offers, by name."""

from __future__ import annotations

from collections.abc import Callable

from ixsearch.patterns import IxsearchError
from ixsearch.search.final import Final
from ixsearch.search.greedy import Greedy
from ixsearch.search.guided import Guided
from ixsearch.search.lazy_greedy import LazyGreedy
from ixsearch.search.nested import Nested
from ixsearch.search.path import Path
from ixsearch.search.proposer import Proposer
from ixsearch.search.published import Published
from ixsearch.search.swaps import Swaps
from ixsearch.search.tpe import Tpe
from ixsearch.search.uniform import Uniform

SEARCHES: dict[str, Callable[[int], list[Proposer]]] = {
    "auto": lambda seed: [Published(), Path(guesses=2), Guided(), Swaps()],
    "path": lambda seed: [Path(), Final()],
    "lazy-greedy": lambda seed: [LazyGreedy()],
    "greedy": lambda seed: [Greedy()],
    "tpe": lambda seed: [Published(), Path(), Tpe(seed=seed)],
}
"""From the seed to the steps; only `tpe` draws anything."""
DEFAULT_SEARCH = "auto"


def proposers(search: str = DEFAULT_SEARCH, nested: bool = False, seed: int = 0) -> list[Proposer]:
    """Uniform patterns, then what the search so named is made of.

    `nested`: moves that keep patterns nested come instead of those that do not.

    Raises:
        IxsearchError: no search is called so.
    """
    if search not in SEARCHES:
        raise IxsearchError(f"no search is called {search!r}: use {' or '.join(SEARCHES)}")
    steps = SEARCHES[search](seed)
    if nested:
        steps = [*(step for step in steps if not isinstance(step, Swaps)), Nested()]
    return [Uniform(), *steps]
