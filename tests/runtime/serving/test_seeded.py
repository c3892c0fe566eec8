"""The property tests' scenarios from seeds: on any device, and without hypothesis."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
import torch

from ixsearch.runtime import NativeEngine

from .agreement import EXACT, FLOAT32, Counted, check_free, check_injected
from .scenario import NAMED, Scenario, draw_scenario, steps_of

SEEDS = 4
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


def scenarios_for(device: str, family: str) -> Iterator[Scenario]:
    """On a CPU few: the other property tests run there."""
    if device == "cuda":
        yield from (replace(scenario, family=family) for scenario in NAMED)
    for seed in range(SEEDS if device == "cuda" else 1):
        yield short_scenario(seed, family)


@pytest.mark.parametrize(
    ("dtype", "rule"), [(torch.float64, EXACT), (torch.float32, FLOAT32)], ids=["exact", "float32"]
)
@pytest.mark.parametrize("family", ["deepseek_v32", "glm_moe_dsa"])
@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_a_request_gets_what_it_gets_alone(folders, device, family, dtype, rule):
    engine = NativeEngine.load(folders[family], device=device, dtype=dtype)
    counted = Counted()
    for scenario in scenarios_for(device, family):
        played = check_free(engine, scenario, rule, counted)
        check_injected(engine, scenario, played, rule, counted)
    assert counted.tokens and counted.tied_tokens <= 0.02 * counted.tokens, counted
    if device == "cuda":
        assert counted.preemptions and counted.reused and counted.own_sources, counted
        assert counted.drafted > counted.accepted > 0, counted
