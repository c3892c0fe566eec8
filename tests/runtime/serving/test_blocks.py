"""Blocks: none is lost, none that is relied on is written, cached ones go when room is needed."""

import pytest

from ixsearch.runtime.cache import BLOCK_SIZE
from ixsearch.runtime.serving import BlockPool
from ixsearch.runtime.serving.prefix import BlockKeys, chain_key, common_prefix, root_key

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = root_key("model", (0, 0, 2))


def keys_of(tokens, root=ROOT):
    return BlockKeys(root, tokens)


def cached(pool, tokens, root=ROOT):
    """Compute some tokens, publish them and let go; the table they had."""
    table, keys = [], keys_of(tokens, root)
    assert pool.reserve(table, 0, len(tokens))
    for i, block in enumerate(table):
        pool.publish(block, keys.parent_of(i), tokens[i * BLOCK_SIZE : (i + 1) * BLOCK_SIZE])
    had = list(table)
    pool.release(table)
    return had


def test_out_of_blocks_is_a_value_and_changes_nothing():
    pool, table = BlockPool(3), []
    assert pool.reserve(table, 0, 2 * BLOCK_SIZE)
    assert not pool.reserve(table, 2 * BLOCK_SIZE, 5 * BLOCK_SIZE)
    assert len(table) == 2 and pool.available == 1
    pool.release(table)
    assert pool.available == 3 and table == []
    pool.check()


def test_a_fork_is_copied_when_one_of_the_two_writes():
    copies = []
    pool, table = BlockPool(4, lambda a, b: copies.append((a, b))), []
    assert pool.reserve(table, 0, BLOCK_SIZE + 10)
    fork = pool.fork(table)
    assert fork == table and not copies and pool.available == 2
    first, shared = table
    assert pool.reserve(fork, BLOCK_SIZE + 10, BLOCK_SIZE + 11)
    assert copies == [(shared, fork[1])] and fork == [first, fork[1]] and table == [first, shared]
    assert pool.reserve(table, BLOCK_SIZE + 10, BLOCK_SIZE + 20) and len(copies) == 1
    pool.release(table)
    pool.release(fork)
    assert pool.available == 4


def test_prefixes_are_found_down_to_the_token():
    pool, tokens = BlockPool(4), list(range(150))
    table = cached(pool, tokens)
    assert pool.find(keys_of(tokens), tokens, 149) == (table, 149)
    other = [*tokens[:100], 9, 9, 9]
    assert pool.find(keys_of(other), other, 102) == (table[:2], 100)
    few = [*tokens[:67], 9]
    assert pool.find(keys_of(few), few, 67) == (table[:1], 64)  # 3 tokens are not worth a copy
    assert pool.find(keys_of(tokens, root_key("model", (0, 0, 0))), tokens, 149) == ([], 0)
    assert pool.find(keys_of(tokens, root_key("other", (0, 0, 2))), tokens, 149) == ([], 0)


def test_what_others_rely_on_is_not_overwritten():
    copies = []
    pool, tokens = BlockPool(3, lambda a, b: copies.append((a, b))), list(range(40))
    (block,) = cached(pool, tokens)
    table = pool.fork([block])
    assert pool.reserve(table, 20, 30)
    assert copies == [(block, table[0])]
    # The first copy's owner may write behind what is published of it.
    pool.publish(table[0], ROOT, [*tokens[:20], *range(90, 100)])
    assert pool.reserve(table, 30, 31) and len(copies) == 1
    assert pool.find(keys_of(tokens), tokens, 40) == ([block], 40)


def test_the_longest_unused_blocks_go_first_and_a_chain_from_its_end():
    pool, old, new = BlockPool(4), list(range(128)), list(range(500, 628))
    cached(pool, old)
    cached(pool, new)
    table = []
    assert pool.reserve(table, 0, BLOCK_SIZE)
    assert pool.find(keys_of(old), old, 128)[1] == 64
    assert pool.find(keys_of(new), new, 128)[1] == 128
    pool.release(table)
    pool.check()


def test_the_same_block_is_kept_once():
    pool, tokens = BlockPool(4), list(range(64))
    first = cached(pool, tokens)
    cached(pool, tokens)
    assert pool.find(keys_of([*tokens, 1]), [*tokens, 1], 64) == (first, 64)
    pool.check()
    pool.forget()
    assert pool.find(keys_of([*tokens, 1]), [*tokens, 1], 64) == ([], 0) and pool.available == 4
    pool.check()


def test_forgetting_leaves_running_requests_alone():
    pool, tokens, table = BlockPool(2), list(range(64)), []
    assert pool.reserve(table, 0, 64)
    pool.publish(table[0], ROOT, tokens)
    pool.forget()
    assert pool.available == 1
    pool.release(table)
    pool.check()


@given(st.lists(st.integers(0, 2), max_size=200), st.lists(st.integers(0, 2), max_size=200))
@settings(deadline=None, max_examples=50)
def test_common_tokens(a, b):
    a, b = [7] * 60 + a, [7] * 60 + b
    assert keys_of(a).common(keys_of(b)) == common_prefix(a, b)
    assert keys_of(a).common(keys_of(b, b"other")) == 0


def test_keys_tell_orders_and_borders_apart():
    assert chain_key(ROOT, [1, 2]) != chain_key(ROOT, [2, 1])
    assert chain_key(chain_key(ROOT, [1]), [2]) != chain_key(ROOT, [1, 2])


class Content:
    """A cache whose slots say which token of which history they hold."""

    def __init__(self, blocks):
        self.slots = [[None] * BLOCK_SIZE for _ in range(blocks)]

    def copy(self, source, target):
        self.slots[target] = list(self.slots[source])


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_every_request_reads_what_it_wrote(data):
    """Random starts, steps and ends over a small pool, against the content of the slots."""
    content = Content(6)
    pool, live = BlockPool(6, content.copy), []
    for _ in range(data.draw(st.integers(5, 40))):
        action = data.draw(st.sampled_from(("start", "grow", "grow", "end")))
        if action == "start":
            tokens = [data.draw(st.integers(0, 1))] * data.draw(st.integers(1, 200))
            tokens += [data.draw(st.integers(0, 1))] * data.draw(st.integers(1, 100))
            keys = keys_of(tokens)
            blocks, computed = pool.find(keys, tokens, len(tokens) - 1)
            live.append([tokens, keys, pool.fork(blocks), computed])
        elif live:
            one = data.draw(st.sampled_from(live))
            tokens, keys, table, computed = one
            stop = min(len(tokens), computed + data.draw(st.integers(1, 90)))
            if action == "end":
                pool.release(table)
                live.remove(one)
            elif pool.reserve(table, computed, stop):
                for at in range(computed, stop):
                    content.slots[table[at // BLOCK_SIZE]][at % BLOCK_SIZE] = tuple(tokens[:at])
                one[3] = stop
                for i in range(computed // BLOCK_SIZE, -(-stop // BLOCK_SIZE)):
                    part = tokens[i * BLOCK_SIZE : min(stop, (i + 1) * BLOCK_SIZE)]
                    pool.publish(table[i], keys.parent_of(i), part)
        pool.check()
        for tokens, _, table, computed in live:
            for at in range(computed):
                assert content.slots[table[at // BLOCK_SIZE]][at % BLOCK_SIZE] == tuple(tokens[:at])
    for _, _, table, _ in live:
        pool.release(table)
    assert pool.available == 6


def test_the_check_finds_a_lost_block():
    pool = BlockPool(2)
    pool._free.pop()
    with pytest.raises(AssertionError):
        pool.check()
