"""Whatever comes together in a step: each request gets what it would get alone."""

import pytest
from hypothesis import HealthCheck, event, example, given, settings

from ixsearch.runtime.indexer import Indexer
from ixsearch.runtime.serving import BlockPool, Limits, loop
from ixsearch.runtime.serving.prefix import PrefixIndex
from ixsearch.runtime.sharing import OwnSharing

from .scenario import Ask, Counted, Scenario, check_free, check_injected, scenarios

COUNTED = Counted()


def small(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def check(tiny, exact, scenario):
    engine = tiny[scenario.family]
    before = COUNTED.preemptions, COUNTED.reused, COUNTED.own_sources
    lives, references = check_free(engine, exact[scenario.family], scenario, COUNTED)
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

ROUNDED = Scenario(
    "glm_moe_dsa", "FSSSS", Limits(1, 2), 1, True, (Ask(1, 127, 0, 1, True, 0, 0, 0),)
)
"""Where one forward in float32 is off by 1.4e-5, and token by token is not."""


@small(10)
@given(scenario=scenarios)
@example(scenario=CROWDED)
@example(scenario=MIXED)
@example(scenario=ROUNDED)
def test_a_request_gets_what_it_gets_alone(tiny, exact, scenario):
    check(tiny, exact, scenario)


def test_the_scenarios_have_it_all():
    """Preemption, prefixes from the cache, own sources; near-ties are the exception."""
    if not COUNTED.tokens:
        pytest.skip("counts what the test before it has seen")
    assert COUNTED.preemptions and COUNTED.reused and COUNTED.own_sources, COUNTED
    assert COUNTED.tied_tokens <= 0.02 * COUNTED.tokens, COUNTED
    assert COUNTED.rounded_references <= 3, COUNTED


def write_into_shared_blocks(patch):
    patch.setattr(BlockPool, "_writable", lambda self, block, offset: True)


def find_what_other_sources_computed(patch):
    patch.setattr(loop, "root_key", lambda identity, sources: b"one for all")


def rely_on_more_than_is_computed(patch):
    find = PrefixIndex.find

    def one_token_more(self, keys, tokens, limit):
        blocks, length = find(self, keys, tokens, limit)
        return blocks, min(length + 1, limit) if length % 64 else length

    patch.setattr(PrefixIndex, "find", one_token_more)


def read_the_closest_layer(patch):
    def before(self, layer):
        full, carried = plain(self, layer)
        return full, carried and self._found[max(self._found)]

    plain = OwnSharing.before
    patch.setattr(OwnSharing, "before", before)


def hide_the_last_key(patch):
    plain = Indexer._decode_scores

    def scores(self, q, weights, keys, step):
        found = plain(self, q, weights, keys, step)
        return found.scatter(1, step.positions_T[: step.decode_rows, None], -1e9)

    patch.setattr(Indexer, "_decode_scores", scores)


@pytest.mark.parametrize(
    "breach",
    [
        write_into_shared_blocks,
        find_what_other_sources_computed,
        rely_on_more_than_is_computed,
        read_the_closest_layer,
        hide_the_last_key,
    ],
)
def test_a_breach_is_seen(tiny, exact, monkeypatch, breach):
    breach(monkeypatch)
    with pytest.raises(AssertionError):
        for scenario in (MIXED, CROWDED):
            family = scenario.family
            check_free(tiny[family], exact[family], scenario, Counted())


@pytest.mark.slow
@small(200)
@given(scenario=scenarios)
def test_a_request_gets_what_it_gets_alone_more(tiny, exact, scenario):
    check(tiny, exact, scenario)
