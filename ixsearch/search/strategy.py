"""The searches that the command line offers, by name."""

from __future__ import annotations

from ixsearch.patterns import IxsearchError
from ixsearch.search.greedy import Greedy
from ixsearch.search.lazy_greedy import LazyGreedy
from ixsearch.search.proposer import Proposer
from ixsearch.search.swaps import Swaps
from ixsearch.search.uniform import Uniform

SEARCHES = {"lazy-greedy": LazyGreedy, "greedy": Greedy}
DEFAULT_SEARCH = "lazy-greedy"


def proposers(search: str = DEFAULT_SEARCH, swap_forwards: float = 8.0) -> list[Proposer]:
    """Uniform patterns, then the search so named, then swaps of at most `swap_forwards`."""
    if search not in SEARCHES:
        raise IxsearchError(f"no search is called {search!r}: use {' or '.join(SEARCHES)}")
    return [Uniform(), SEARCHES[search](), Swaps(swap_forwards)]
