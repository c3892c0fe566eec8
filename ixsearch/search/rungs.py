"""On how many documents patterns are compared before all are spent on them."""

from __future__ import annotations

from math import ceil

from ixsearch.mix import FIRST_OF_EACH

FEWEST = 4
"""Documents of the first rung: fewer say too little of how documents differ."""
SHARE = 8


def rungs_of(documents: int, sets: int = 1) -> tuple[int, ...]:
    """An eighth of the documents, at least `FEWEST` and some of each set; doubled up to all."""
    fewest = max(FEWEST, FIRST_OF_EACH * sets)
    rungs = [min(documents, max(fewest, ceil(documents / SHARE)))]
    while rungs[-1] < documents:
        rungs.append(min(documents, 2 * rungs[-1]))
    return tuple(rungs)
