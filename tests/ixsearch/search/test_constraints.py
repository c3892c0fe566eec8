import re

import pytest

from ixsearch.patterns import IxsearchError, Stages
from ixsearch.search.constraints import NESTED, Constraints, constraint_words


def space_of(num_layers, *args):
    return Constraints.parse(*args).space(num_layers, tuple(range(num_layers)))


def test_none():
    space = space_of(6, None, None, None)
    assert space.free_layers == (1, 2, 3, 4, 5) and constraint_words(space) == ""


def test_pins_and_a_partition():
    space = space_of(8, "1,6-7", "2-3", Stages.of((4, 4)))
    assert space.always_full == (0, 1, 4, 6, 7) and space.free_layers == (5,)
    assert constraint_words(space) == (
        "pinned F: layers 1, 6-7; pinned S: layers 2-3;"
        " pipeline stages, each begins with F: at layers 0, 4"
    )
    assert constraint_words(space, nested=True) == f"{constraint_words(space)}; {NESTED}"


def test_stages_that_do_not_divide_evenly_are_split_as_vllm_does():
    """VLLM gives 78 layers in 4 stages as 19, 20, 20, 19; SGLang sends the indices on."""
    assert space_of(78, None, None, Stages(4)).always_full == (0, 19, 39, 59)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("x", None, None), "--pin-full: 'x' is not a layer"),
        ((None, "4-", None), "--pin-shared: '4-' is not a layer"),
        ((None, None, Stages.of((4, 5))), "the partition 4 + 5 = 9, the model has 8 layers"),
        ((None, None, Stages(9)), "9 stages for 8 layers; give --pp-partition"),
        ((None, "4", Stages(2)), "begins with layer 4, which must be F, and is pinned S"),
        (("1-8", None, None), "cannot pin layer 8: the model has layers 0 to 7"),
    ],
)
def test_what_makes_no_sense(given, says):
    with pytest.raises(IxsearchError, match=re.escape(says)):
        space_of(8, *given)
