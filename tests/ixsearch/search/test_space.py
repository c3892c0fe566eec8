from itertools import product

import pytest

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.search.space import SearchSpace


def every_pattern(num_layers):
    return [Pattern("F" + "".join(p)) for p in product("FS", repeat=num_layers - 1)]


def test_layers_are_free_pinned_or_bare():
    space = SearchSpace(6, (0, 1, 2, 4, 5), pinned=(4,))
    assert space.always_full == (0, 4)
    assert space.free_layers == (1, 2, 5)
    assert space.baseline == Pattern("FFFSFF")
    assert list(space.budgets) == [2, 3, 4, 5]
    assert [space.letters(i) for i in (0, 1, 3, 4)] == [("F",), ("F", "S"), ("S",), ("F", "S")]


def test_contains():
    space = SearchSpace(6, (0, 1, 2, 4, 5), pinned=(4,))
    legal = {p.letters for p in every_pattern(6) if space.contains(p)}
    assert legal == {f"F{a}{b}SF{c}" for a, b, c in product("FS", repeat=3)}
    assert not space.contains(Pattern("FFFSFFF"))


def test_removals_and_swaps_are_every_legal_neighbour():
    space = SearchSpace(7, (0, 1, 2, 4, 5, 6), pinned=(4,))
    legal = [p for p in every_pattern(7) if space.contains(p)]
    for pattern in legal:
        apart = {
            p: sum(a != b for a, b in zip(p.letters, pattern.letters, strict=True)) for p in legal
        }
        fewer = [p for p in legal if apart[p] == 1 and p.num_full < pattern.num_full]
        moved = [p for p in legal if apart[p] == 2 and p.num_full == pattern.num_full]
        assert sorted(space.removals(pattern)) == sorted(fewer)
        assert sorted(space.swaps(pattern)) == sorted(moved)


@pytest.mark.parametrize("num_layers", [5, 16, 61])
def test_uniform_in_an_open_space_is_the_plain_one(num_layers):
    space = SearchSpace(num_layers, tuple(range(num_layers)))
    for budget in space.budgets:
        assert space.uniform(budget) == Pattern.uniform(num_layers, budget)


def test_uniform_keeps_to_the_space():
    space = SearchSpace(16, tuple(i for i in range(16) if i not in (4, 8)), pinned=(7, 15))
    for budget in space.budgets:
        assert space.contains(space.uniform(budget))
        assert space.uniform(budget).num_full == budget
    assert space.uniform(4).full_layers == (0, 3, 7, 15)


@pytest.mark.parametrize(
    ("indexers", "pinned", "says"),
    [
        ((1, 2, 3), (), "layer 0 has no indexer weights"),
        ((0, 1, 2), (3,), "cannot pin layers 3 F: they have no indexer .* out of --pin-full"),
        ((0, 1, 2, 3), (4, -1), "cannot pin layers -1, 4: the model has layers 0 to 3"),
        ((0, 9), (), r"indexer weights for layers \[9\] of 4"),
    ],
)
def test_contradictions_are_refused(indexers, pinned, says):
    with pytest.raises(IxsearchError, match=says):
        SearchSpace(4, indexers, pinned)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pinned_shared": (4,)}, "cannot pin layer 4: the model has layers 0 to 3"),
        ({"pinned_shared": (0,)}, "cannot pin layer 0 S: .* take it out of --pin-shared"),
        ({"pinned": (1, 2), "pinned_shared": (1, 2)}, "layers 1, 2 are pinned both F and S"),
        ({"stage_starts": (0, 3)}, r"begins with layer 3, .* no indexer .* begin at 0, 3\)"),
        ({"stage_starts": (0, 4)}, "begins with layer 4: the model has layers 0 to 3"),
        (
            {"stage_starts": (0, 2), "pinned_shared": (2,)},
            "begins with layer 2, .* pinned S: take it out of --pin-shared, or move the stages",
        ),
    ],
)
def test_contradictory_constraints_are_refused(changes, says):
    with pytest.raises(IxsearchError, match=says):
        SearchSpace(4, (0, 1, 2), **changes)


def test_pinned_shared_layers_and_stage_starts():
    space = SearchSpace(6, (0, 1, 2, 3, 5), pinned=(1,), pinned_shared=(2, 4), stage_starts=(0, 3))
    legal = {p.letters for p in every_pattern(6) if space.contains(p)}
    assert legal == {"FFSFSF", "FFSFSS"}
    assert (space.baseline, space.fullest) == (Pattern("FFFFSF"), Pattern("FFSFSF"))
    assert space.free_layers == (5,)
    assert list(space.budgets) == [3, 4]
    assert space.uniform(3) == Pattern("FFSFSS")
    assert [space.letters(i) for i in (1, 2, 3, 4)] == [("F", "S")] * 3 + [("S",)]
