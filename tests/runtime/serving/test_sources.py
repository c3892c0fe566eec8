"""Who reads whose indices: the buffer, the groups, and a request's own map."""

import pytest
import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.attention import MissingSourceError
from ixsearch.runtime.indexer import TopK
from ixsearch.runtime.interface import Request
from ixsearch.runtime.serving import Wishes
from ixsearch.runtime.sharing import GroupSharing, OwnSharing, TopKBuffer, checked_sources

from ..test_parity import tokens_for
from .watch import Watch


def topk(source, value, rows=3):
    full = torch.full((rows, 2), value, dtype=torch.int32)
    return TopK(source, full, full + 100, torch.full((rows,), 2, dtype=torch.int32))


def test_a_group_reads_what_its_full_layer_wrote():
    sharing = GroupSharing(Pattern("FSFS").sources(), TopKBuffer(8, 2, torch.device("cpu")))
    assert sharing.before(0) == (True, None)
    sharing.after(0, topk(0, 5))
    full, carried = sharing.before(1)
    assert full is False and carried.source == 0 and carried.logical_TK.tolist() == [[5, 5]] * 3
    sharing.after(1, carried)
    sharing.after(2, topk(2, 7))
    assert sharing.before(3)[1].logical_TK.tolist() == [[7, 7]] * 3


def test_the_buffer_is_one_and_the_same():
    buffer = TopKBuffer(8, 2, torch.device("cpu"))
    buffer.write(topk(0, 5))
    place = buffer.read(0, 1).slots_TK.data_ptr()
    buffer.clear()
    buffer.write(topk(2, 7, rows=5))
    assert buffer.read(2, 3).slots_TK.data_ptr() == place == buffer.slots.data_ptr()


def test_nothing_is_read_from_an_earlier_forward():
    """A pipeline stage that begins on S, or a forward that stopped, leaves a stale buffer."""
    buffer = TopKBuffer(8, 2, torch.device("cpu"))
    buffer.write(topk(0, 5))
    sharing = GroupSharing((0, 0), buffer)
    with pytest.raises(MissingSourceError, match=r"layer 1 is S and reads layer 0's.*has nothing"):
        sharing.before(1)


def test_nothing_is_read_from_another_group():
    buffer = TopKBuffer(8, 2, torch.device("cpu"))
    sharing = GroupSharing((0, 1, 0), buffer)
    sharing.after(0, topk(0, 5))
    sharing.after(1, topk(1, 6))
    with pytest.raises(MissingSourceError, match="has those of layer 1"):
        sharing.before(2)


def test_each_request_reads_its_own_source():
    request_T = torch.tensor([0, 1, 1])
    sharing = OwnSharing([(0, 0, 0, 0), (0, 1, 0, 1)], request_T)
    assert sharing.before(0) == (True, None)
    sharing.after(0, topk(0, 5))
    full, carried = sharing.before(1)
    assert full.tolist() == [False, True, True] and carried.source == 0
    sharing.after(1, topk(1, 6).where(full, carried))
    full, carried = sharing.before(2)
    assert full is False and carried.logical_TK[:, 0].tolist() == [5, 5, 5]
    full, carried = sharing.before(3)
    assert carried.logical_TK[:, 0].tolist() == [5, 6, 6]


def test_own_sources_without_their_layer():
    sharing = OwnSharing([(0, 0)], torch.tensor([0]))
    with pytest.raises(MissingSourceError, match="layer 1 reads layer 0"):
        sharing.before(1)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ((0, 0), "2 sources for the 4 layers"),
        ((0, 2, 2, 2), "layer 1 cannot read layer 2: it has not run"),
        ((0, -1, 2, 2), "layer 1 cannot read layer -1"),
        ((0, 0, 1, 0), "layer 2 cannot read layer 1, which is S itself"),
        ((0, 0, 2, 3), "layer 3 cannot be F for a request: it is S in FFFS"),
    ],
)
def test_sources_that_do_not_go(sources, message):
    with pytest.raises(IxsearchError, match=message):
        checked_sources(sources, Pattern("FFFS"))


def test_own_sources_that_are_a_pattern_give_what_the_pattern_gives(engine):
    request = Request(tuple(tokens_for(0, 90)), 6)
    want = {}
    for letters in ("FFFFF", "FSFSS", "FSSSS"):
        engine.set_pattern(Pattern(letters))
        (want[letters],) = engine.generate([request])
    engine.set_pattern(Pattern("FFFFF"))
    serving = engine.serving(12)
    lives = {
        letters: serving.submit(request, Wishes(sources=Pattern(letters).sources()))
        for letters in want
    }
    list(serving.run())
    assert {letters: live.completion.tokens for letters, live in lives.items()} == want
    assert len(set(want.values())) > 1
    again = serving.submit(request, Wishes(sources=Pattern("FSSSS").sources()))
    list(serving.run())
    assert again.reused == 89 and again.completion.tokens == want["FSSSS"]


def test_converted_once_a_group(engine):
    engine.set_pattern(Pattern("FSFSS"))
    serving = engine.serving(12)
    for i in range(3):
        serving.submit(Request(tuple(tokens_for(i, 40)), 4))
    with Watch() as watch:
        list(serving.run())
    assert watch.conversions == len(watch.indexer_calls) == 2 * watch.forwards
    engine.set_pattern(Pattern("FFFFF"))
