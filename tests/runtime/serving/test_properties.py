"""Whatever comes together in a step: each request gets what it would get alone."""

import pytest
from hypothesis import HealthCheck, event, example, given, settings

from ixsearch.runtime.serving import Limits

from .scenario import Ask, Counted, Scenario, check_free, check_injected, scenarios

COUNTED = Counted()


def small(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def check(tiny, scenario):
    engine = tiny[scenario.family]
    before = COUNTED.preemptions, COUNTED.reused, COUNTED.own_sources
    lives, references = check_free(engine, scenario, COUNTED)
    check_injected(engine, scenario, lives, references)
    after = COUNTED.preemptions, COUNTED.reused, COUNTED.own_sources
    for what, a, b in zip(("preempted", "reused", "own sources"), before, after, strict=True):
        event(f"{what}: {b > a}")


CROWDED = Scenario(
    "glm_moe_dsa",
    "FSFSS",
    Limits(16, 4),
    1,
    True,
    tuple(Ask(0, 127, 1, 4, False, 0, 0, 0) for _ in "1234"),
)
MIXED = Scenario(
    "deepseek_v32",
    "FFFFF",
    Limits(64, 5),
    20,
    True,
    (
        Ask(0, 100, 0, 6, True, 0, 0, 0),
        Ask(0, 129, 5, 6, False, 0, 1, 0),
        Ask(0, 129, 5, 6, False, 1, 1, 0),
        Ask(0, 128, 1, 6, False, 2, 3, 2),
        Ask(1, 7, 0, 6, True, 4, 3, 0),
    ),
)


@small(12)
@given(scenario=scenarios)
@example(scenario=CROWDED)
@example(scenario=MIXED)
def test_a_request_gets_what_it_gets_alone(tiny, scenario):
    check(tiny, scenario)


def test_the_scenarios_have_it_all():
    """Preemption, prefixes from the cache, own sources; near-ties are the exception."""
    if not COUNTED.tokens:
        pytest.skip("counts what the test before it has seen")
    assert COUNTED.preemptions and COUNTED.reused and COUNTED.own_sources, COUNTED
    assert COUNTED.tied_tokens <= 0.02 * COUNTED.tokens, COUNTED


@pytest.mark.slow
@small(600)
@given(scenario=scenarios)
def test_a_request_gets_what_it_gets_alone_more(tiny, scenario):
    check(tiny, scenario)
