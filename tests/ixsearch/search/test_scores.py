"""What proposers see of scores: levels, while more is measured."""

from __future__ import annotations

from random import Random

import pytest

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import DocumentScore
from ixsearch.search.objective import Objective
from ixsearch.search.scores import Scores

DOCUMENTS = 6
BASELINE, *PATTERNS = [Pattern(p) for p in ("FFFF", "FFFS", "FFSF", "FSFF", "FSSF", "FSSS")]


def some_rows(random, numbers):
    return {
        n: DocumentScore(random.randint(1, 5), random.random(), random.random(), (True,))
        for n in numbers
    }


@pytest.mark.parametrize("objective", [Objective(), Objective("loss")])
@pytest.mark.parametrize("seed", range(20))
def test_levels_are_of_all_that_is_seen(objective, seed):
    """Whatever was asked before."""
    random, scores, seen = Random(seed), Scores(DOCUMENTS, objective, BASELINE), []
    for step in range(25):
        pattern = random.choice([BASELINE, *PATTERNS]) if step else BASELINE
        whole = [p for p in scores if scores.seen(p) == DOCUMENTS]
        base = random.choice([None, *whole])
        count = random.randint(1, DOCUMENTS) if step else DOCUMENTS
        rows = some_rows(random, random.sample(range(DOCUMENTS), count))
        seen.append(({pattern: rows}, base))
        scores.see(*seen[-1])
        fresh = Scores(DOCUMENTS, objective, BASELINE)
        for each in seen:
            fresh.see(*each)
        assert {p: scores.level(p) for p in scores} == {p: fresh.level(p) for p in fresh}
