"""Tiny models of both families, and a buffer and caches full of garbage."""

import pytest
import torch

from ixsearch.runtime import NativeEngine
from ixsearch.runtime.serving import loop
from ixsearch.runtime.sharing import TopKBuffer

from ..forward import poison
from ..mtp_oracle import save_with_mtp
from ..oracle import FAMILIES, make_model

TINY = dict(num_hidden_layers=5, index_topk=6, hidden_size=48)


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """A checkpoint of each family, with an MTP layer."""
    return {
        family: save_with_mtp(make_model(family, seed=8, **TINY), tmp_path_factory.mktemp(family))
        for family in FAMILIES
    }


@pytest.fixture(scope="session")
def tiny(folders):
    """An engine of each family, by its name."""
    return {family: NativeEngine.load(folder, device="cpu") for family, folder in folders.items()}


@pytest.fixture(scope="session")
def exact(folders):
    """The same in float64."""
    return {
        family: NativeEngine.load(folder, device="cpu", dtype=torch.float64)
        for family, folder in folders.items()
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
