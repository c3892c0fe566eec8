"""Each phase of the training on a small model: it lowers its loss and touches what it should."""

from __future__ import annotations

import pytest
import torch
from training.exam import Exam, grade
from training.log import Log
from training.model import DsaModel
from training.mtp import DraftLayer
from training.shape import Shape
from training.trainer import Settings, Trainer

SMALL = Shape(
    num_hidden_layers=2,
    first_k_dense_replace=1,
    hidden_size=64,
    num_attention_heads=2,
    q_lora_rank=32,
    kv_lora_rank=32,
    qk_nope_head_dim=16,
    qk_rope_head_dim=16,
    v_head_dim=32,
    intermediate_size=64,
    moe_intermediate_size=16,
    index_topk=16,
)
SETTINGS = Settings(batch=2, tokens=128, workers=0, warm_distil=2, distil=2, max_steps=4)


@pytest.fixture
def trainer(tmp_path):
    torch.manual_seed(0)
    return Trainer(DsaModel(SMALL), DraftLayer(SMALL), SETTINGS, Log(tmp_path))


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("_dense_step", "loss"),
        ("_warm_step", "divergence"),
        ("_sparse_step", "loss"),
        ("_draft_dense_step", "loss"),
        ("_draft_step", "loss"),
    ],
)
def test_a_step_lowers_its_loss(trainer, name, key):
    if name.startswith("_draft"):
        trainer.dense(1.0)  # or the head it shares is all zeros
    tokens, kinds = trainer._batch()
    step = getattr(trainer, name)
    losses = [step(tokens, kinds, torch.tensor(0.3))[key].sum().item() for _ in range(12)]
    assert losses[-1] < losses[0]


def snapshot(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: t.clone() for name, t in module.state_dict().items()}


def changed(module: torch.nn.Module, before: dict[str, torch.Tensor]) -> set[str]:
    return {name for name, t in module.state_dict().items() if not t.equal(before[name])}


def test_each_phase_touches_its_own(trainer):
    trainer.dense(1.0)  # so that attention is not all zeros
    model, draft = snapshot(trainer.model), snapshot(trainer.draft)
    trainer.warm(1.0)
    touched = changed(trainer.model, model)
    assert touched and all(".indexer." in name for name in touched)
    model = snapshot(trainer.model)
    trainer.draft_phase("draft", 1.0, dense=False)
    assert not changed(trainer.model, model) and changed(trainer.draft, draft)
    draft = snapshot(trainer.draft)
    trainer.drop(1.0)
    assert not changed(trainer.draft, draft)
    assert {"lm_head.weight", "model.layers.1.mlp.experts.up_proj"} <= changed(trainer.model, model)


def test_the_log_and_the_figures_are_left(trainer):
    trainer.dense(1.0)
    assert (trainer.log.folder / "figures.json").is_file()
    phase = trainer.log.figures["phases"]["dense"]
    assert phase["steps"] == 4 and phase["tokens"] == 4 * 2 * 128


def test_random_patterns_begin_with_f_and_keep_their_share(trainer):
    patterns = torch.stack([trainer._random_pattern() for _ in range(300)])
    assert patterns[:, 0].all()
    assert 0.1 < 1 - patterns[:, 1].float().mean() < 0.3


def test_a_pattern_on_the_device_is_the_pattern(trainer):
    trainer.dense(1.0)
    tokens, _ = trainer._batch()
    model = trainer.model
    outputs = []
    for pattern in ([True, True], [True, False]):
        with torch.no_grad():
            told = model.sparse(tokens, model.begin(tokens), pattern)
            seen = model.sparse(tokens, model.begin(tokens), torch.tensor(pattern))
        assert told.equal(seen)
        outputs.append(told)
    assert not outputs[0].equal(outputs[1])


def test_attention_sees_no_future(trainer):
    trainer.dense(1.0)
    tokens, _ = trainer._batch()
    other = tokens.clone()
    other[:, 80:] = 7
    with torch.no_grad():
        for way in (trainer.model.dense, trainer.model.sparse):
            a, b = (way(t, trainer.model.begin(t))[:, :80] for t in (tokens, other))
            torch.testing.assert_close(a, b)


def test_with_all_positions_selected_sparse_is_dense(trainer):
    trainer.dense(1.0)
    tokens, _ = trainer._batch()
    with torch.no_grad():
        run = trainer.model.begin(tokens)
        run.topk = tokens.shape[1]
        sparse = trainer.model.sparse(tokens, run)
        dense = trainer.model.dense(tokens, trainer.model.begin(tokens))
    torch.testing.assert_close(sparse, dense, atol=1e-5, rtol=1e-5)


def test_an_exam_numbers_every_problem_and_grades_it():
    exam = Exam.draw("test", 2, torch.device("cpu"))
    assert sorted(exam.problem.unique().tolist()) == list(range(-1, exam.count))
    torch.manual_seed(0)
    result = grade(DsaModel(SMALL), exam, batch=2)
    assert result.accuracy == 0.0 and result.loss == pytest.approx(5.98, abs=0.05)
