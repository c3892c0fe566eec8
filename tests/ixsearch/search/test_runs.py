from itertools import pairwise
from random import Random

import pytest

from ixsearch.search.runs import from_runs, numbers_of, to_runs


@pytest.mark.parametrize("seed", range(20))
def test_runs_there_and_back(seed):
    random = Random(seed)
    numbers = sorted(random.sample(range(40), random.randrange(1, 40)))
    runs = to_runs(numbers)
    assert from_runs(runs) == tuple(numbers)
    assert all(first < behind for first, behind in runs)
    assert all(behind < first for (_, behind), (first, _) in pairwise(runs))


def test_trials_of_now_and_of_earlier_studies():
    assert numbers_of({"documents": [[0, 2], [5, 6]]}) == (0, 1, 5)
    assert numbers_of({"documents": [2, 5]}) == (2, 3, 4)
    assert numbers_of({"documents": to_runs([])}) == ()
