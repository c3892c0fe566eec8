"""Small random checkpoints: of both families, made once a session, and in shards."""

import pytest

from ixsearch.runtime import NativeEngine
from ixsearch.runtime.cache import LayerCache

from .mtp_oracle import save_with_mtp
from .oracle import FAMILIES, make_model, save
from .shards import make_sharded


@pytest.fixture(scope="session", params=["deepseek_v32", "glm_moe_dsa"])
def saved(request, tmp_path_factory):
    """(transformers model, folder) of one family."""
    model = make_model(request.param, seed=1)
    return model, save(model, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def deepseek_folder(tmp_path_factory):
    return save(make_model("deepseek_v32", seed=1), tmp_path_factory.mktemp("deepseek"))


@pytest.fixture(scope="session")
def deepseek(deepseek_folder):
    return NativeEngine.load(deepseek_folder, device="cpu")


@pytest.fixture
def sharded(tmp_path):
    return make_sharded(tmp_path / "model")


@pytest.fixture(scope="module", params=list(FAMILIES))
def mtp_engine(request, tmp_path_factory):
    """A random model with a random MTP layer: most drafts are wrong."""
    model = make_model(request.param, seed=1)
    folder = save_with_mtp(model, tmp_path_factory.mktemp(request.param), seed=2)
    engine = NativeEngine.load(folder, device="cpu")
    engine.folder = folder
    return engine


@pytest.fixture
def poisoned(monkeypatch):
    """All caches are full of NaN before they are written."""
    plain = LayerCache.allocate

    def allocate(*args):
        cache = plain(*args)
        cache.poison()
        return cache

    monkeypatch.setattr(LayerCache, "allocate", allocate)
