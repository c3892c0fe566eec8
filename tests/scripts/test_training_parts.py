"""The parts of the training: router, experts, selection, optimizer, budget, patterns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from training.budget import Budget
from training.card import tables
from training.experts import Moe, Router, best
from training.optimizer import orthogonalise
from training.patterns import greedy, spell, uniform
from training.scoring import scores_by_products
from training.selection import select_by_sorting
from training.shape import Shape

NARROW = Shape(hidden_size=16, moe_intermediate_size=8)


def test_the_router_evens_the_load():
    torch.manual_seed(0)
    router = Router(NARROW)
    with torch.no_grad():
        router.weight[0] += 0.5  # expert 0 is everyone's favourite
    x = torch.randn(500, 16) + 1.0
    _, before = router(x)
    for _ in range(300):
        router.balance(router(x)[1], 0.01)
    _, after = router(x)
    assert before.sum() == after.sum() == 500 * 2
    assert after.max() - after.min() < (before.max() - before.min()) / 4
    assert router.e_score_correction_bias[0] < 0


def test_the_bias_goes_by_the_sign_of_the_load():
    router = Router(NARROW)
    router.balance(torch.tensor([5, 1, 3, 3, 3, 3, 3, 3]), 0.5)
    assert router.e_score_correction_bias.tolist() == [-0.5, 0.5, 0, 0, 0, 0, 0, 0]


def test_experts_come_from_the_best_groups():
    router = Router(Shape(hidden_size=16, n_group=4, topk_group=1))
    choice = torch.tensor([[0.9, 0.0, 0.5, 0.5, 0.8, 0.0, 0.1, 0.1]])
    assert router.choose(choice).nonzero()[:, 1].tolist() == [2, 3]


def test_best_prefers_the_first_of_equals():
    assert best(torch.tensor([1.0, 3.0, 3.0, 3.0]), 2).tolist() == [False, True, True, False]


def test_the_mixture_is_the_sum_of_its_experts():
    torch.manual_seed(0)
    moe = Moe(NARROW)
    for parameter in moe.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    x = torch.randn(5, 16)
    with torch.no_grad():
        weights, _ = moe.gate(x)
        expected = moe.shared_experts(x)
        for expert in range(NARROW.n_routed_experts):
            gate, up, down = (
                getattr(moe.experts, f"{name}_proj")[expert] for name in ("gate", "up", "down")
            )
            expected += weights[:, expert, None] * ((F.silu(x @ gate.T) * (x @ up.T)) @ down.T)
        torch.testing.assert_close(moe(x)[0], expected)


def test_orthogonalised_matrices_have_singular_values_about_one():
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonalise(torch.randn(3, 8, 20)))
    assert values.min() > 0.5 and values.max() < 1.3


def test_of_equal_scores_the_later_position_is_selected():
    scores = torch.zeros(1, 6, 6)
    scores[0, 5, 1] = 1.0
    chosen = select_by_sorting(scores, 3)[0]
    assert chosen[5].nonzero()[:, 0].tolist() == [1, 4, 5]
    assert chosen[1].nonzero()[:, 0].tolist() == [0, 1]


def test_scores_are_weighted_hits():
    q, k, w = torch.randn(1, 2, 4, 8), torch.randn(1, 4, 8), torch.randn(1, 2, 4)
    expected = sum(w[0, n, 3] * torch.relu(q[0, n, 3] @ k[0, 1]) for n in range(2))
    torch.testing.assert_close(scores_by_products(q, k, w)[0, 3, 1], expected)


KERNEL_CHECK = """
import torch
from training.scoring import scores_by_kernel, scores_by_products
from training.selection import causal_mask, select_by_kernel, select_by_sorting
torch.manual_seed(0)
q, k, w = torch.randn(1, 3, 64, 16), torch.randn(1, 64, 16), torch.randn(1, 3, 64)
past = causal_mask(64, q.device)
ours, theirs = scores_by_kernel(q, k, w), scores_by_products(q, k, w)
torch.testing.assert_close(ours[:, past], theirs[:, past])
ties = torch.randint(-2, 3, (1, 16, 16)) * 0.5
for scores in (theirs, ties, ties.relu() * -1):
    assert select_by_kernel(scores, 5).equal(select_by_sorting(scores, 5))
"""


def test_the_kernels_follow_their_definitions():
    """By Triton's interpreter, which has to be asked for before Triton is imported."""
    pytest.importorskip("triton")
    scripts = Path(__file__).parents[2] / "scripts"
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(scripts)}
    subprocess.run([sys.executable, "-c", KERNEL_CHECK], env=environment, check=True)


def test_phases_shrink_alike_when_time_is_short():
    now = [0.0]
    budget = Budget(100.0, {"a": 60.0, "b": 60.0}, {"b": 10.0}, clock=lambda: now[0])
    assert budget.seconds("a") == pytest.approx(45.0)
    now[0] = 30.0
    assert budget.seconds("b") == 60.0
    now[0] = 95.0
    assert budget.seconds("b") == 0.0


def test_greedy_takes_the_cheapest_layer_each_time():
    cost = [0, 3, 1, 2]
    found = greedy(4, 1, lambda f: sum(c for c, full in zip(cost, f, strict=True) if not full))
    assert [spell(flags) for flags in found] == ["FFSF", "FFSS", "FSSS"]


def test_uniform_patterns():
    assert uniform(16, 8) == (True, False) * 8
    assert sum(uniform(16, 12)) == 12 and uniform(16, 12)[:5] == (True, True, True, False, True)


def test_the_card_has_a_row_for_each_budget():
    def entry(pattern: str) -> dict:
        return {"pattern": pattern, "full": pattern.count("F"), "accuracy": 0.5, "loss": 0.1}

    draws = {"full": 2, "mean": 0.4, "lowest": 0.1, "highest": 0.9}
    variant = {
        "all_full": entry("FFFF"),
        "greedy": [entry("FFFS"), entry("FFSS"), entry("FSSS")],
        "uniform": [entry("FFFS"), entry("FSFS"), entry("FSSS")],
        "random": [draws, draws],
        "acceptance": {"solution": 0.75},
    }
    phase = {"steps": 9, "tokens": 2e6, "seconds": 3.0, "first_steps": 1, "tokens_a_second": 1e6}
    text = tables({"phases": {"dense": phase}, "variants": {"sparse": variant}})
    assert "| `dense` | 9 | 2.0M | 3 (+1) | 1.00M |" in text
    assert "| greedy, 2 F | 50.0% (loss 0.1) `FFSS` |" in text
    assert "| random, 2 F: mean (lowest–highest) | 40.0% (10.0%–90.0%) |" in text
