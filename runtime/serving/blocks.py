"""The blocks of the paged cache: who uses them, and which are kept for later requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from ixsearch.runtime.cache import BLOCK_SIZE, blocks_for
from ixsearch.runtime.serving.prefix import BlockKeys, PrefixIndex


class BlockPool:
    """Blocks with reference counts. A request's table is a plain list of block numbers.

    A block is in use, or idle (nobody uses it, its tokens are kept until the room is needed, the
    longest unused first), or free. Blocks that several use, and what others may rely on in a
    block, are never written to: `reserve` copies first.

    Args:
        copy: copies a block's content, (from, to); it runs before anything else is written.
    """

    def __init__(self, blocks: int, copy: Callable[[int, int], None] | None = None) -> None:
        self.blocks = blocks
        self._copy = copy or (lambda source, target: None)
        self._users = [0] * blocks
        self._free = list(reversed(range(blocks)))
        self._idle: OrderedDict[int, None] = OrderedDict()
        self._index = PrefixIndex()

    @property
    def available(self) -> int:
        """Blocks that a request could get: free and idle ones."""
        return len(self._free) + len(self._idle)

    def reserve(self, table: list[int], start: int, stop: int) -> bool:
        """Make positions [start, stop) of a request writable; its table grows as needed.

        False when there are too few blocks; then nothing has changed.
        """
        copied = start // BLOCK_SIZE
        shared = copied < len(table) and not self._writable(table[copied], start % BLOCK_SIZE)
        missing = max(0, blocks_for(stop) - len(table))
        if missing + shared > self.available:
            return False
        if shared:
            source, table[copied] = table[copied], self._take()
            self._copy(source, table[copied])
            self._drop(source)
        table.extend(self._take() for _ in range(missing))
        return True

    def find(self, keys: BlockKeys, tokens: Sequence[int], limit: int) -> tuple[list[int], int]:
        """Cached blocks of the longest prefix of tokens[:limit], and how long that is."""
        return self._index.find(keys, tokens, limit)

    def fork(self, table: Sequence[int]) -> list[int]:
        """A second table over the same blocks, without a copy until one of the two writes."""
        for block in table:
            self._idle.pop(block, None)
            self._users[block] += 1
        return list(table)

    def release(self, table: list[int]) -> None:
        """Give a table back; what is cached of it stays, its beginning the longest."""
        while table:
            self._drop(table.pop())

    def publish(self, block: int, parent: bytes, tokens: Sequence[int]) -> None:
        """Let others find the block: it holds these tokens, and they will not change."""
        if len(tokens) > self._index.tokens_in(block):
            self._index.add(block, parent, tokens)

    def forget(self) -> None:
        """Let nothing be found any more."""
        for block in range(self.blocks):
            self._index.remove(block)
        self._free.extend(self._idle)
        self._idle.clear()

    def check(self) -> None:
        """Raises AssertionError if a block is lost or in two places at once; for tests."""
        used = [block for block, users in enumerate(self._users) if users]
        places = [*used, *self._free, *self._idle]
        if sorted(places) != list(range(self.blocks)):
            raise AssertionError(f"used {used}, free {self._free}, idle {list(self._idle)}")
        if any(block in self._index for block in self._free):
            raise AssertionError("a free block can be found")

    def _writable(self, block: int, offset: int) -> bool:
        return self._users[block] == 1 and self._index.tokens_in(block) <= offset

    def _take(self) -> int:
        if self._free:
            block = self._free.pop()
        else:
            block, _ = self._idle.popitem(last=False)
            self._index.remove(block)
        self._users[block] = 1
        return block

    def _drop(self, block: int) -> None:
        self._users[block] -= 1
        if self._users[block]:
            return
        if block in self._index:
            self._idle[block] = None
        else:
            self._free.append(block)
