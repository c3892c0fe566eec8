"""Scores against logits, and their independence of the batch."""

import itertools

import pytest
import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime import NativeEngine, score
from ixsearch.runtime.interface import Document

from .forward import full_forward
from .oracle import make_model, save
from .test_parity import tokens_for

ALL = Pattern.all_full(6)
EVERY = [Pattern("F" + "".join(rest)) for rest in itertools.product("FS", repeat=5)]


def documents():
    return [
        Document("marked", tuple(tokens_for(0, 90)), ((30, 41), (80, 90))),
        Document("whole", tuple(tokens_for(1, 70))),
        Document("early", tuple(tokens_for(2, 60)), ((5, 20),)),
    ]


def by_logits(model, document, pattern, index_topk):
    tokens = list(document.tokens)
    base = full_forward(model, ALL, tokens)[0].double().log_softmax(-1)
    mine = full_forward(model, pattern, tokens)[0].double().log_softmax(-1)
    spans = document.answers or ((1, len(tokens)),)
    scored = [t for a, b in spans for t in range(a, b) if t - 1 >= index_topk]
    loss = sum(-float(mine[t - 1, tokens[t]]) for t in scored)
    kl = sum(float((base[t - 1].exp() * (base[t - 1] - mine[t - 1])).sum()) for t in scored)
    hits = tuple(
        all(int(mine[t - 1].argmax()) == tokens[t] for t in range(a, b))
        for a, b in document.answers
    )
    return len(scored), loss, kl, hits


@pytest.mark.parametrize("letters", ["FFFFFF", "FSFSSF", "FSSSSS"])
def test_scores_follow_from_logits(deepseek, letters):
    (row,) = deepseek.score(documents(), [Pattern(letters)])
    for document, got in zip(documents(), row, strict=True):
        tokens, loss, divergence, hits = by_logits(
            deepseek.model, document, Pattern(letters), deepseek.describe().index_topk
        )
        assert got.tokens == tokens and got.matches == hits
        assert got.loss_sum == pytest.approx(loss, rel=1e-5)
        assert got.divergence_sum == pytest.approx(divergence, rel=1e-3, abs=1e-6)


def test_matches_are_found(deepseek):
    """An answer that the model itself would give is a match."""
    from ixsearch.runtime.interface import Request

    deepseek.set_pattern(ALL)
    prompt = tuple(tokens_for(5, 40))
    (new,) = deepseek.generate([Request(prompt, 6)])
    wrong = (new[0] + 1) % 97
    right = Document("right", prompt + new, ((40, 46),))
    off = Document("off", (*prompt, *new[:3], wrong, *new[4:]), ((40, 43), (40, 46)))
    scores = deepseek.score([right, off], [ALL])[0]
    assert scores[0].matches == (True,)
    assert scores[1].matches[0] is True and scores[1].matches[1] is False


def test_baseline_diverges_by_exactly_nothing(deepseek):
    for one in deepseek.score(documents(), [ALL])[0]:
        assert one.divergence_sum == 0.0


@pytest.mark.parametrize("state_bytes", [1, 1 << 28])
def test_a_score_is_the_same_bits_in_any_batch(deepseek_folder, monkeypatch, state_bytes):
    monkeypatch.setitem(score.STATE_BYTES, "cpu", state_bytes)
    batch = NativeEngine.load(deepseek_folder, device="cpu").score(documents(), EVERY)
    alone = NativeEngine.load(deepseek_folder, device="cpu")
    for pattern, row in list(zip(EVERY, batch, strict=True))[::5]:
        assert alone.score(documents(), [pattern])[0] == row
        assert alone.score(documents()[1:2], [pattern, ALL])[0] == row[1:2]


def test_divergence_is_positive_and_finite_for_every_pattern(deepseek):
    for pattern, row in zip(EVERY, deepseek.score(documents(), EVERY), strict=True):
        total = sum(one.divergence_sum for one in row)
        assert (total == 0) == (pattern == ALL)
        assert total >= 0


@pytest.mark.parametrize("offload", [False, True])
def test_nothing_to_score(deepseek_folder, offload):
    engine = NativeEngine.load(deepseek_folder, device="cpu", offload=offload)
    assert engine.score([], EVERY[:2]) == [[], []]
    assert engine.score(documents(), []) == []


def test_documents_without_a_scored_token(deepseek):
    early = deepseek.score([documents()[2]], [Pattern("FSSSSS")])[0][0]
    assert early.tokens == 19 - 12 and len(early.matches) == 1
    blind = Document("blind", tuple(tokens_for(2, 10)))
    assert deepseek.score([blind], [Pattern("FSSSSS")])[0][0].tokens == 0


def test_baseline_of_a_checkpoint_trained_with_sharing(tmp_path):
    """Layers without an indexer cannot be F: the baseline is F wherever there is one."""
    model = make_model("glm_moe_dsa", index_topk_pattern="FSFSSF")
    engine = NativeEngine.load(save(model, tmp_path), device="cpu")
    trained, fewer = engine.score(documents(), [Pattern("FSFSSF"), Pattern("FSSSSF")])
    assert sum(s.divergence_sum for s in trained) == 0
    assert sum(s.divergence_sum for s in fewer) > 0


def test_progress_reaches_the_end(deepseek):
    seen = []
    deepseek.score(documents(), EVERY[:3], seen.append)
    assert seen == sorted(seen) and seen[-1] == pytest.approx(1.0)


def test_tokens_of_another_vocabulary(deepseek):
    with pytest.raises(IxsearchError, match=r"document far .* another model"):
        deepseek.score([Document("far", (1, 2, 500))], [ALL])


@pytest.mark.parametrize("answers", [((0, 3),), ((2, 2),), ((1, 4),)])
def test_answers_outside_of_the_document(answers):
    with pytest.raises(IxsearchError, match="document bad: answer"):
        Document("bad", (1, 2, 3), answers)


def test_default_dtype_and_device(deepseek):
    info = deepseek.describe()
    assert info.dtype == "float32" and info.device.startswith("cpu")
    assert deepseek.model.dtype == torch.float32
