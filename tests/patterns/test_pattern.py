from __future__ import annotations

import random

import pytest

from ixsearch.patterns import Pattern, PatternError


def random_patterns(count: int, seed: int = 0) -> list[Pattern]:
    rng = random.Random(seed)
    return [
        Pattern("F" + "".join(rng.choice("FS") for _ in range(rng.randrange(128))))
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("letters", "said"),
    [
        ("", "empty"),
        ("SFF", "layer 0 is S"),
        ("Ffs", "layer 1 is 'f': write F, upper case"),
        ("FF SS", "layer 2 is ' ': write the letters with nothing between"),
        ("F,S", "nothing between"),
        ("FFXS", "layer 2 is 'X': write F or S"),
        ("FSsFs", "layers 2, 4 are 's'"),
        ("F" + "s" * 9, "layers 1, 2, 3, 4 and 5 more are 's'"),
        ("F\u0405", "U+0405 CYRILLIC CAPITAL LETTER DZE"),
        ("FS\u200b", "U+200B ZERO WIDTH SPACE"),
        ("F\nS", "layer 1 is '\\n'"),
        (17, "a pattern is a string"),
        (["F", "S"], "a pattern is a string"),
    ],
)
def test_what_is_no_pattern_is_refused_and_says_why(letters: str, said: str) -> None:
    with pytest.raises(PatternError) as caught:
        Pattern(letters)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_message_stays_short_for_a_huge_string() -> None:
    with pytest.raises(PatternError) as caught:
        Pattern("x" * 1_000_000)
    assert len(str(caught.value)) < 300


def test_sources_and_groups_agree_with_the_definition() -> None:
    for pattern in random_patterns(200):
        sources = pattern.sources()
        for layer, source in enumerate(sources):
            assert pattern.letters[source] == "F"
            assert source == pattern.letters.rindex("F", 0, layer + 1)
        groups = pattern.index_groups()
        assert [layer for group in groups for layer in group] == list(range(len(pattern)))
        assert all(sources[layer] == group.start for group in groups for layer in group)
        assert len(groups) == pattern.num_full


def test_counts_and_spellings_agree() -> None:
    for pattern in random_patterns(200, seed=1):
        assert pattern.num_full + len(pattern.shared_layers) == len(pattern)
        assert sorted(pattern.full_layers + pattern.shared_layers) == list(range(len(pattern)))
        assert pattern.retention == pattern.num_full / len(pattern)
        assert Pattern.from_full(len(pattern), pattern.full_layers) == pattern
        letters = {"full": "F", "shared": "S"}
        assert "".join(letters[t] for t in pattern.to_indexer_types()) == str(pattern)
        assert all(pattern.is_full(i) == (i in pattern.full_layers) for i in range(len(pattern)))


def test_uniform_has_the_count_asked_and_even_groups() -> None:
    for layers in range(1, 81):
        for full in range(1, layers + 1):
            pattern = Pattern.uniform(layers, full)
            sizes = [len(group) for group in pattern.index_groups()]
            assert (len(pattern), pattern.num_full) == (layers, full)
            assert max(sizes) - min(sizes) <= 1
    assert str(Pattern.uniform(16, 5)) == "FSSFSSFSSFSSFSSS"


@pytest.mark.parametrize("full", [0, 17, -1])
def test_uniform_refuses_a_count_outside_the_layers(full: int) -> None:
    with pytest.raises(PatternError, match="ask for 1 to 16"):
        Pattern.uniform(16, full)


@pytest.mark.parametrize(
    ("frequency", "offset", "letters"),
    [
        (4, 2, "FFSSSFSSSFSSSF"),
        (4, 3, "FFFSSSFSSSFSSS"),
        (4, 1, "FSSSFSSSFSSSFS"),
        (2, 2, "FFSFSFSFSFSFSF"),
        (1, 2, "F" * 14),
        (3, 99, "F" * 14),
    ],
)
def test_frequency_follows_transformers(frequency: int, offset: int, letters: str) -> None:
    assert str(Pattern.from_frequency(14, frequency, offset)) == letters


@pytest.mark.parametrize(
    ("layers", "frequency", "full"),
    [(78, 2, 40), (61, 2, 31), (78, 4, 21), (61, 4, 16), (78, 8, 11), (61, 8, 9)],
)
def test_frequency_counts_of_published_models(layers: int, frequency: int, full: int) -> None:
    assert Pattern.from_frequency(layers, frequency).num_full == full


def test_changing_one_layer() -> None:
    pattern = Pattern("FFSF")
    assert str(pattern.with_shared(3)) == "FFSS"
    assert str(pattern.with_full(2)) == "FFFF"
    assert pattern.with_full(0) == pattern
    with pytest.raises(PatternError, match="layer 0 is S"):
        pattern.with_shared(0)


@pytest.mark.parametrize("layer", [-1, 4])
def test_a_layer_the_model_does_not_have_is_refused(layer: int) -> None:
    for change in (Pattern("FFSF").with_shared, Pattern("FFSF").with_full):
        with pytest.raises(PatternError, match="layers 0 to 3"):
            change(layer)
    with pytest.raises(PatternError, match="layers 0 to 3"):
        Pattern.from_full(4, [0, layer])


def test_a_pattern_is_a_value() -> None:
    assert len({Pattern("FS"), Pattern("FS"), Pattern("FF")}) == 2
    with pytest.raises(AttributeError):
        Pattern("FS").letters = "FF"  # type: ignore[misc]


@pytest.mark.parametrize(
    "value", ["FFSF", list("FFSF"), ("full", "full", "shared", "full"), ["F", "full", "S", "F"]]
)
def test_parse_reads_every_spelling_by_layer(value: object) -> None:
    assert Pattern.parse(value) == Pattern("FFSF")


@pytest.mark.parametrize("value", [None, 3, {"F": 1}, ["F", 1], ["F", "half"], [], "ffs", b"FF"])
def test_parse_refuses_everything_else(value: object) -> None:
    with pytest.raises(PatternError):
        Pattern.parse(value)


def test_groups_distances_and_runs() -> None:
    pattern = Pattern("FFSSSFS")
    assert pattern.sources() == (0, 1, 1, 1, 1, 5, 5)
    assert pattern.reuse_distances() == (0, 0, 1, 2, 3, 0, 1)
    assert pattern.run_lengths() == (("F", 2), ("S", 3), ("F", 1), ("S", 1))
    assert sum(n for _, n in pattern.run_lengths()) == len(pattern)


def test_nested() -> None:
    assert Pattern("FSSF").is_nested_in(Pattern("FFSF"))
    assert not Pattern("FFSF").is_nested_in(Pattern("FSSF"))
    assert Pattern("FSSF").is_nested_in(Pattern("FSSF"))
    with pytest.raises(PatternError, match="do not compare"):
        Pattern("FS").is_nested_in(Pattern("FSS"))


def test_frequency_undoes_from_frequency() -> None:
    for frequency in range(2, 9):
        for offset in range(1, 9):
            pattern = Pattern.from_frequency(40, frequency, offset)
            assert pattern.frequency() == frequency, (frequency, offset)
    for letters in ("FFFF", "FSSS", "FFSSFSSS", "FSFSSFSF", "FFSSSFSSSSFS"):
        assert Pattern(letters).frequency() is None
