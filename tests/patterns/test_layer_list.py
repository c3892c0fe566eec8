import re

import pytest

from ixsearch.patterns import IxsearchError
from ixsearch.patterns.layer_list import layer_ranges, parse_layers


def test_layers_are_read_ascending_and_once():
    assert parse_layers("3,7-9", "--pin-full") == (3, 7, 8, 9)
    assert parse_layers(" 8-8 , 0,7-9,3 ", "--pin-full") == (0, 3, 7, 8, 9)


def test_ranges_are_written_as_they_are_read():
    assert layer_ranges((0, 1, 2, 6, 8, 9)) == "0-2, 6, 8-9"
    assert layer_ranges(()) == "none"
    assert parse_layers(layer_ranges((0, 1, 2, 6, 8, 9)), "--x") == (0, 1, 2, 6, 8, 9)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("three", "--pin-full: 'three' is not a layer; write layers and ranges like 3,7-9"),
        ("3,,7", "--pin-full: '3,,7' has an empty entry; write layers and ranges like 3,7-9"),
        ("", "--pin-full: '' has an empty entry"),
        ("-3", "'-3' is not a layer"),
        ("7-", "'7-' is not a layer"),
        ("1.5", "'1.5' is not a layer"),
        ("٣", "is not a layer"),
        ("0-999999999", "'0-999999999' is not a layer"),
        ("9-7", "--pin-full: 9-7 runs backwards; write 7-9"),
    ],
)
def test_what_is_no_list_of_layers(text, says):
    with pytest.raises(IxsearchError, match=re.escape(says)):
        parse_layers(text, "--pin-full")
