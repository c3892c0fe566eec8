"""What the indices of a pattern's F layers have in common, as a section of the report."""

from __future__ import annotations

from itertools import pairwise

from ixsearch.output import figures as fig
from ixsearch.output.markdown import table
from ixsearch.output.outcome import Outcome

MOST_ROWS = 16


def overlap_section(outcome: Outcome) -> list[str]:
    """A row for each F layer of the pattern and the F layer after it."""
    found, full = outcome.index_overlap, (outcome.pattern or outcome.baseline.pattern).full_layers
    if found is None or len(full) < 2:
        return []
    pairs = sorted(pairwise(full), key=lambda pair: found.shares[pair[0]][pair[1]])
    rows = table(
        "F layer | next F layer | indices in common %",
        ((a, b, fig.percent(found.shares[a][b])) for a, b in sorted(pairs[:MOST_ROWS])),
    )
    some = f", the {MOST_ROWS} of {len(pairs)} that share least" if len(pairs) > MOST_ROWS else ""
    text = (
        "The mean share of the top-k indices of one F layer of the pattern that the next one"
        f" selects too{some}; in all-F, over {found.tokens} tokens past index_topk of"
        f" {found.documents} calibration documents. For interest only, and worthless for choosing"
        " patterns: in the study of docs/search.md those chosen by it were 2 to 94,000 times"
        " farther from all-F than greedy's, at all budgets but the smallest."
    )
    return ["## What the indices of layers have in common", "", *rows, "", text]
