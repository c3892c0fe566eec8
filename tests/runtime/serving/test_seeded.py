"""The property tests' scenarios from seeds: on any device, and without hypothesis."""

from random import Random

import pytest
import torch

from ixsearch.runtime import NativeEngine

from .agreement import EXACT, FLOAT32, Counted, check_free, check_injected
from .scenario import Scenario, draw_scenario, steps_of

SEEDS = 12
MOST_STEPS = 40
CUDA = pytest.param(
    "cuda",
    marks=[
        pytest.mark.gpu,
        pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    ],
)


def short_scenario(seed: int, family: str) -> Scenario:
    """Without the many steps of a small budget: a GPU takes as long for a small one."""
    random = Random(seed)
    while True:
        scenario = draw_scenario(random.choice)
        if scenario.family == family and steps_of(scenario) <= MOST_STEPS:
            return scenario


@pytest.mark.parametrize(
    ("dtype", "rule"), [(torch.float64, EXACT), (torch.float32, FLOAT32)], ids=["exact", "float32"]
)
@pytest.mark.parametrize("family", ["deepseek_v32", "glm_moe_dsa"])
@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_a_request_gets_what_it_gets_alone(folders, device, family, dtype, rule):
    engine = NativeEngine.load(folders[family], device=device, dtype=dtype)
    counted = Counted()
    for seed in range(SEEDS if device == "cuda" else 2):
        scenario = short_scenario(seed, family)
        played = check_free(engine, scenario, rule, counted)
        check_injected(engine, scenario, played, rule, counted)
    print(counted)
    assert counted.tokens and counted.tied_tokens <= 0.02 * counted.tokens, counted
    if device == "cuda":
        assert counted.reused and counted.preemptions and counted.accepted, counted
