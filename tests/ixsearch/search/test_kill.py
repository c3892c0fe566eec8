"""A process that is really killed."""

import subprocess
import sys
import time

import pytest
from optuna.trial import TrialState

from ixsearch.search.runner import run_search
from ixsearch.search.strategy import proposers

from .fake_engine import DOCUMENTS, FakeEngine, memory, open_study, space_of

SPACE, BUDGETS = space_of(7), (5, 3)


def search(storage, engine=None):
    study = open_study(storage, SPACE)
    return run_search(engine or FakeEngine(), DOCUMENTS, study, SPACE, proposers(), BUDGETS)


@pytest.mark.parametrize("after", [0, 4, 8])
def test_a_killed_process_loses_only_the_batch_in_flight(tmp_path, after):
    url = f"sqlite:///{tmp_path}/study.db"
    code = f"from tests.ixsearch.search.test_kill import search; search({url!r})"
    study = open_study(url, SPACE)
    child = subprocess.Popen([sys.executable, "-c", code])
    while len(study.scores()) <= after and child.poll() is None:
        time.sleep(0.01)
    child.kill()
    child.wait()
    resumed = search(url)
    storage = memory()
    whole = search(storage)
    undisturbed = open_study(storage, SPACE).scores()
    assert len(whole.scores) < len(undisturbed)
    assert {p: s.documents for p, s in study.scores().items()} == {
        p: s.documents for p, s in undisturbed.items()
    }
    assert (resumed.best, set(resumed.scores)) == (whole.best, set(whole.scores))
    states = [t.state for t in study.optuna.get_trials()]
    assert TrialState.RUNNING not in states
    assert states.count(TrialState.COMPLETE) == len(whole.scores)
