"""On how many documents patterns are compared before all are spent on them."""

from __future__ import annotations

from math import ceil

FEWEST = 4
"""Documents of the first rung: fewer say too little of how documents differ."""
SHARE = 8


def rungs_of(documents: int) -> tuple[int, ...]:
    """An eighth of the documents, at least `FEWEST`, then doubled up to all."""
    rungs = [min(documents, max(FEWEST, ceil(documents / SHARE)))]
    while rungs[-1] < documents:
        rungs.append(min(documents, 2 * rungs[-1]))
    return tuple(rungs)
