"""The trie against a plain search for what has to be computed."""

import itertools
import random

import pytest

from ixsearch.patterns import Pattern
from ixsearch.runtime.trie import PatternTrie, prefixes


def test_prefixes_are_shared():
    trie = PatternTrie([Pattern(p) for p in ["FFFF", "FFFS", "FSFF", "FSFF"]])
    assert [len(level) for level in trie.levels] == [1, 2, 2, 3]
    assert trie.cost == 8 / 4 and trie.width == 3
    assert trie.starts(0) == [""] and not any(trie.starts(i) for i in (1, 2, 3))


def test_a_pattern_starts_from_its_longest_held_prefix():
    trie = PatternTrie([Pattern("FSFF"), Pattern("FFFF")], {"F", "FSF", "FFFF", "S"})
    assert trie.levels == [[], [], [], ["FSFF"]]
    assert trie.starts(3) == ["FSF"] and trie.layers == 1


def test_what_is_held_below_a_hole_is_not_computed_again():
    """`FS` is not held, and not needed."""
    trie = PatternTrie([Pattern("FSFS"), Pattern("FSSF")], {"F", "FSF"})
    assert trie.levels == [[], ["FS"], ["FSS"], ["FSFS", "FSSF"]]
    assert [trie.starts(i) for i in range(4)] == [[], ["F"], [], ["FSF"]]


def test_nothing_to_compute():
    assert PatternTrie([]).cost == 0 and PatternTrie([]).width == 0
    whole = PatternTrie([Pattern("FSF")], {"FSF"})
    assert whole.cost == 0 and whole.levels == [[], [], []]


def needed_states(patterns, held):
    """Asked for from the end: a state that is not at hand needs the one before it."""
    computed, open_ = set(), [p.letters for p in patterns]
    while open_:
        prefix = open_.pop()
        if prefix and prefix not in held and prefix not in computed:
            computed.add(prefix)
            open_.append(prefix[:-1])
    return computed


@pytest.mark.parametrize("seed", range(200))
def test_exactly_what_is_needed_is_computed(seed):
    rng = random.Random(seed)
    layers = rng.randint(1, 7)
    every = [Pattern("F" + "".join(rest)) for rest in itertools.product("FS", repeat=layers - 1)]
    patterns = rng.choices(every, k=rng.randint(1, 12))
    possible = sorted({p for each in every for p in prefixes(each.letters)})
    held = set(rng.sample(possible, rng.randint(0, len(possible))))
    trie = PatternTrie(patterns, held)
    want = needed_states(patterns, held)
    assert [len(level) for level in trie.levels] == [len(set(level)) for level in trie.levels]
    for layer, level in enumerate(trie.levels):
        assert set(level) == {p for p in want if len(p) == layer + 1}
        parents = {p[:-1] for p in level}
        assert sorted(trie.starts(layer)) == sorted(p for p in parents if p not in want)
        assert all(p in held or p == "" for p in trie.starts(layer))
    assert trie.layers == len(want) and trie.cost == pytest.approx(len(want) / layers)
    assert trie.width == max(len(level) for level in trie.levels)
