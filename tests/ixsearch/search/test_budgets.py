import pytest

from ixsearch.patterns import IxsearchError
from ixsearch.search.budgets import default_budgets, parse_budgets, parse_retentions
from ixsearch.search.space import SearchSpace

from .fake_engine import space_of


def test_budgets_are_distinct_from_most_to_fewest():
    assert parse_budgets(" 4,8, 5,8", space_of(16)) == (8, 5, 4)
    assert parse_budgets("1,16", space_of(16)) == (16, 1)


@pytest.mark.parametrize(
    ("text", "layers", "budgets"),
    [
        ("0.5,0.25", 16, (8, 4)),
        ("1/2,0.5,.5", 16, (8,)),
        ("0.25", 78, (20,)),  # 19.5: halves go up
        ("0.25", 61, (15,)),  # 15.25
        ("1", 5, (5,)),
        ("0.3", 10, (3,)),
    ],
)
def test_retention_is_rounded_to_the_nearest_number(text, layers, budgets):
    assert parse_retentions(text, space_of(layers)) == budgets


def test_defaults():
    assert default_budgets(space_of(16)) == (12, 10, 8, 5, 4)
    assert default_budgets(space_of(78)) == (59, 49, 39, 24, 20)
    assert default_budgets(space_of(2)) == (2, 1)
    assert default_budgets(SearchSpace(16, tuple(range(9)), pinned=(1, 2, 3, 4, 5))) == (9, 8, 6)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0", "0 F layers; ask for 1 or more"),
        ("17", "17 F layers of 16; ask for 1 to 16"),
        ("-3", "-3 F layers; ask for 1 or more"),
        ("8,,4", "has an empty entry; write it like 8,5,4"),
        ("", "has an empty entry"),
        ("0.5", "not a whole number of F layers; for shares of the layers use --retention"),
        ("eight", "'eight' is not a whole number"),
    ],
)
def test_bad_budgets(text, says):
    with pytest.raises(IxsearchError, match=says):
        parse_budgets(text, space_of(16))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("8", "8 is not above 0 and at most 1; for numbers of F layers use --budget"),
        ("0", "0 is not above 0"),
        ("-0.5", "not above 0"),
        ("half", "'half' is not a share; write it like 0.5 or 1/2"),
        ("1/0", "'1/0' is not a share"),
        ("nan", "'nan' is not a share"),
        ("0.01", "0 F layers of 16; ask for 1 to 16"),
        ("0.5,", "write it like 0.5,0.25"),
    ],
)
def test_bad_retentions(text, says):
    with pytest.raises(IxsearchError, match=says):
        parse_retentions(text, space_of(16))


def test_budgets_that_the_model_forbids():
    space = SearchSpace(16, tuple(range(9)), pinned=(3, 4))
    assert parse_budgets("3,9", space) == (9, 3)
    for text in ("2", "10"):
        with pytest.raises(IxsearchError, match=r"3 must be F .* 9 have indexer .* ask for 3 to 9"):
            parse_budgets(text, space)
