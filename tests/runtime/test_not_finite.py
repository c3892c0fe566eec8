"""Scores of models in which a number is none: one error that names document, pattern and layer."""

from dataclasses import replace

import pytest
import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine, not_finite
from ixsearch.runtime.checkpoint import Checkpoint
from ixsearch.runtime.not_finite import NotFiniteError

from .damage import ATTENTION, ROUTER, damaged_copy
from .test_score import ALL, documents

OTHERS = ["self_attn.o_proj.weight", "mlp.shared_experts.down_proj.weight"]
PATTERN = Pattern("FFFSFF")


def load(folder, **switches):
    return NativeEngine.load(folder, device="cpu", **switches)


@pytest.mark.parametrize("switches", [{}, {"offload": True}, {"cache": "fp8"}], ids=str)
@pytest.mark.parametrize("name", ATTENTION + ROUTER + OTHERS)
def test_the_first_layer_is_named(deepseek_folder, tmp_path, name, switches):
    engine = load(damaged_copy(deepseek_folder, tmp_path / "x", 3, name), **switches)
    words = rf"^document marked under pattern {ALL}: NaN or infinity, first in layer 3: "
    for _ in range(2):  # nothing of the first call is kept
        with pytest.raises(NotFiniteError, match=words):
            engine.score(documents(), [PATTERN, Pattern("FSSSSS")])


def test_the_pattern_is_named_that_meets_it(deepseek_folder):
    """All-F is sound and known; then layer 4's indexer breaks."""
    engine = load(deepseek_folder)
    want = engine.score(documents(), [Pattern("FFFFSF")])
    engine.model.layers[4].attention.indexer.k_norm_weight[3] = float("nan")
    with pytest.raises(NotFiniteError, match=rf"marked under pattern {PATTERN}: .* in layer 4: "):
        engine.score(documents(), [Pattern("FFFFSF"), PATTERN])
    assert engine.score(documents(), [Pattern("FFFFSF")]) == want


@pytest.mark.parametrize(
    ("where", "place"), [("embedding", "the embedding"), ("head", not_finite.BEHIND_THE_LAYERS)]
)
def test_outside_of_the_layers(deepseek_folder, where, place):
    engine = load(deepseek_folder)
    damaged = torch.full_like(getattr(engine.model.top, where), float("inf"))
    engine.model.top = replace(engine.model.top, **{where: damaged})
    with pytest.raises(NotFiniteError, match=f"first in {place}: "):
        engine.score(documents(), [PATTERN])


def test_a_token_that_nothing_is_asked_about(deepseek_folder):
    """Damage of a token counts though no answer stands there: a request with it would fail."""
    engine = load(deepseek_folder)
    marked = documents()[0]
    alone = next(t for t in marked.tokens[:25] if marked.tokens.count(t) == 1)
    engine.model.top.embedding[alone] = float("nan")
    with pytest.raises(NotFiniteError, match=r"document marked .* first in the embedding: "):
        engine.score([marked], [PATTERN])


def test_looking_for_the_layer_reads_no_further(deepseek_folder, tmp_path, monkeypatch):
    """With the weights on disk: a pass, and then the layers up to the bad one."""
    folder = damaged_copy(deepseek_folder, tmp_path / "x", 1, OTHERS[0])
    engine, reads = load(folder, offload=True), []
    plain = Checkpoint.read

    def spy(self, name, pinned=False):
        reads.append(name)
        return plain(self, name, pinned)

    monkeypatch.setattr(Checkpoint, "read", spy)
    with pytest.raises(NotFiniteError, match="first in layer 1: "):
        engine.score(documents(), [PATTERN])
    assert reads.count("model.layers.1.self_attn.o_proj.weight") == 2
    assert reads.count("model.layers.4.self_attn.o_proj.weight") == 1
