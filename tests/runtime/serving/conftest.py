"""Tiny models of both families, and a buffer and caches full of garbage."""

import pytest

from ixsearch.runtime import NativeEngine
from ixsearch.runtime.serving import loop
from ixsearch.runtime.sharing import TopKBuffer

from ..forward import poison
from ..oracle import FAMILIES, make_model, save

TINY = dict(num_hidden_layers=5, index_topk=6, hidden_size=48)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """An engine of each family, by its name."""
    return {
        family: NativeEngine.load(
            save(make_model(family, seed=8, **TINY), tmp_path_factory.mktemp(family)), device="cpu"
        )
        for family in FAMILIES
    }


@pytest.fixture
def engine(tiny):
    """With all layers F."""
    found = tiny["deepseek_v32"]
    found.set_pattern(found.describe().baseline)
    return found


@pytest.fixture(autouse=True, scope="session")
def garbage():
    """What was not written in this forward, or this cache, must never be read."""
    patch = pytest.MonkeyPatch()
    clear, allocate = TopKBuffer.clear, loop._allocate

    def poisoned_clear(self):
        clear(self)
        for tensor in (self.logical, self.slots, self.counts):
            tensor.fill_(1 << 30)

    def poisoned_allocate(*args):
        cache = allocate(*args)
        poison(cache)
        return cache

    patch.setattr(TopKBuffer, "clear", poisoned_clear)
    patch.setattr(loop, "_allocate", poisoned_allocate)
    yield
    patch.undo()
