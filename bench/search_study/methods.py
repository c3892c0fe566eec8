"""The methods that the study compares, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ixsearch.runtime.interface import Document
from ixsearch.search.final import Final
from ixsearch.search.proposer import Proposer
from ixsearch.search.strategy import SEARCHES
from ixsearch.search.tpe import Tpe
from ixsearch.search.uniform import Uniform
from search_study.memo import MemoEngine
from search_study.overlap_path import OverlapPath
from search_study.random_patterns import RandomPatterns

Make = Callable[[MemoEngine, Sequence[Document], int], list[Proposer]]
"""From the engine, the calibration documents and the seed."""

OWN: dict[str, Make] = {
    "tpe-cold": lambda engine, documents, seed: [Tpe(warm=False, seed=seed)],
    "uniform": lambda engine, documents, seed: [Uniform()],
    "random": lambda engine, documents, seed: [RandomPatterns(seed)],
    "overlap-path": lambda engine, documents, seed: [
        OverlapPath(lambda count: engine.index_overlap(documents[:count])),
        Final(),
    ],
}
METHODS = tuple(dict.fromkeys((*SEARCHES, *OWN)))


def proposers_of(
    method: str, engine: MemoEngine, documents: Sequence[Document], seed: int
) -> list[Proposer]:
    """The steps of a method. Those of the command line come without its uniform patterns."""
    return OWN[method](engine, documents, seed) if method in OWN else SEARCHES[method](seed)
