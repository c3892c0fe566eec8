"""What a document takes grows with its length, not with the square of it."""

import pytest
import torch

from ixsearch.kernels.twins import chunks
from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine, sizes
from ixsearch.runtime.interface import Document, Request
from ixsearch.runtime.serving import Finish, Limits

from .forward import full_forward
from .oracle import make_model, save
from .peak import Peak
from .test_parity import tokens_for
from .test_score import EVERY, documents

FULL = Pattern.all_full(2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    model = make_model("deepseek_v32", 4, num_hidden_layers=2, max_position_embeddings=4096)
    return save(model, tmp_path_factory.mktemp("long"))


@pytest.fixture
def small_workspace(monkeypatch):
    """So that the sizes of some hundred tokens stand out."""
    monkeypatch.setattr(sizes, "SCORE_ELEMENTS", 1 << 14)
    monkeypatch.setitem(chunks.WORKSPACE_ELEMENTS, "cpu", 1 << 12)


def scored(folder, length, **switches):
    engine = NativeEngine.load(folder, device="cpu", **switches)
    document = Document("long", tuple(tokens_for(0, length)), ((length - 5, length),))
    with Peak() as peak:
        engine.score([document], [FULL])
    return peak


def served(folder, length):
    """In one chunk."""
    engine = NativeEngine.load(folder, device="cpu")
    serving = engine.serving(40, Limits(tokens=2000))
    live = serving.submit(Request(tuple(tokens_for(0, length)), 1))
    with Peak() as peak:
        list(serving.run())
    assert live.completion.finish is Finish.LENGTH
    return peak


RUNS = {
    "score": scored,
    "fp8": lambda folder, length: scored(folder, length, cache="fp8"),
    "offload": lambda folder, length: scored(folder, length, offload=True),
    "serving": served,
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.usefixtures("small_workspace")
def test_the_peak_grows_with_the_length(folder, run):
    short, long = run(folder, 500), run(folder, 2000)
    assert long.largest <= 4.2 * short.largest
    assert long.most <= 4.2 * short.most
    assert long.largest < 2000 * 2000  # one byte for each pair of tokens


@pytest.mark.usefixtures("small_workspace")
def test_what_is_predicted_of_a_document_in_a_layer(tmp_path):
    """Between two lengths, so that what does not depend on them falls out. As in the published
    models, the heads' queries in the latent space are the largest part.
    """
    shape = dict(num_attention_heads=32, num_key_value_heads=32, kv_lora_rank=64, index_n_heads=4)
    more = dict(num_hidden_layers=2, max_position_embeddings=4096)
    folder = save(make_model("deepseek_v32", 4, **shape, **more), tmp_path)
    config = NativeEngine.load(folder, device="cpu").model.config
    grown = scored(folder, 2000).most - scored(folder, 1000).most
    states = 2 * sizes.state_bytes(config.hidden_size, config.index_topk, 4)
    assert sizes.score_bytes(2000) <= 4 << 14
    predicted = 1000 * (sizes.layer_bytes(config, 4) + states)
    assert grown == pytest.approx(predicted, rel=0.2)


def test_index_scores_alive_at_once():
    assert sizes.score_bytes(1000) == 4 * 1000 * 1000
    assert sizes.score_bytes(200_000) <= 4 * sizes.SCORE_ELEMENTS < 300e6
    assert sizes.score_rows(1 << 40) == 1


@pytest.mark.parametrize("elements", [1, 90 * 7, 90 * 60])
def test_rows_at_a_time_select_the_same(deepseek, monkeypatch, elements):
    tokens, pattern = tokens_for(0, 90), Pattern("FSFFSF")
    want, selected = full_forward(deepseek.model, pattern, tokens)
    monkeypatch.setattr(sizes, "SCORE_ELEMENTS", elements)
    got, again = full_forward(deepseek.model, pattern, tokens)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    for mine, theirs in zip(again[0], selected[0], strict=True):
        assert torch.equal(mine.logical_TK, theirs.logical_TK)


@pytest.mark.parametrize("offload", [False, True])
def test_a_score_is_the_same_bits_in_any_batch(deepseek_folder, monkeypatch, offload):
    monkeypatch.setattr(sizes, "SCORE_ELEMENTS", 90 * 13)
    batch = NativeEngine.load(deepseek_folder, device="cpu").score(documents(), EVERY[::4])
    alone = NativeEngine.load(deepseek_folder, device="cpu", offload=offload)
    for i, document in enumerate(documents()):
        for pattern, row in zip(EVERY[::4], batch, strict=True):
            assert alone.score([document], [pattern])[0] == [row[i]]
