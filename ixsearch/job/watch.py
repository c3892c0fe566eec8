"""A search while it runs."""

from __future__ import annotations

from ixsearch.job.doubts import doubts
from ixsearch.job.inputs import Inputs
from ixsearch.output.progress import RunProgress
from ixsearch.search.plan import SearchProgress


class Watch:
    """Shows how far a search is, and warns as soon as all-F is scored that it is of no use."""

    def __init__(self, inputs: Inputs, progress: RunProgress) -> None:
        self._inputs, self._progress = inputs, progress
        self._report = progress.phase("search")
        self._has_seen_all_full = False

    def __call__(self, at: SearchProgress) -> None:
        best = "  ".join(f"{budget}F {divergence:.2g}" for budget, divergence in at.best.items())
        note = f"{at.proposer}, {at.finished} patterns  {best}".rstrip()
        self._report(at.fraction, note)
        if at.all_full and not self._has_seen_all_full:
            self._has_seen_all_full = True
            for text in doubts(self._inputs, at.all_full):
                self._progress.warn(text)
