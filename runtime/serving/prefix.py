"""Which tokens the blocks of the cache hold, so that a prompt finds what is computed already."""

from __future__ import annotations

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ixsearch.runtime.cache import BLOCK_SIZE

MIN_TAIL = 8
"""Fewer tokens of a block are not worth the copy of it."""


def root_key(identity: str, sources: Sequence[int]) -> bytes:
    """What a chain of blocks begins with: nothing is shared across models or patterns."""
    return hashlib.sha256(f"{identity} {list(sources)}".encode()).digest()


def chain_key(parent: bytes, tokens: Sequence[int]) -> bytes:
    """The key of a full block: its tokens and, by the parent's key, all those before."""
    return hashlib.sha256(parent + array("q", tokens).tobytes()).digest()


class BlockKeys:
    """The keys of one request's full blocks, its root first; grows with the request's tokens."""

    def __init__(self, root: bytes, tokens: list[int]) -> None:
        self._keys = [root]
        self._tokens = tokens

    def parent_of(self, block: int) -> bytes:
        """The key that the tokens before the request's block number `block` come to."""
        while len(self._keys) <= block:
            start = (len(self._keys) - 1) * BLOCK_SIZE
            self._keys.append(chain_key(self._keys[-1], self._tokens[start : start + BLOCK_SIZE]))
        return self._keys[block]

    def common(self, other: BlockKeys) -> int:
        """Leading tokens that two requests have in common, as far as blocks can be shared."""
        longest = min(len(self._tokens), len(other._tokens)) // BLOCK_SIZE
        block = 0
        while block <= longest and self.parent_of(block) == other.parent_of(block):
            block += 1
        if block == 0:
            return 0
        start = (block - 1) * BLOCK_SIZE
        window = slice(start, start + BLOCK_SIZE)
        return start + common_prefix(self._tokens[window], other._tokens[window])


@dataclass(frozen=True)
class Held:
    """What a cached block holds: these tokens, after those of `parent`."""

    parent: bytes
    tokens: tuple[int, ...]


class PrefixIndex:
    """Cached blocks by what they hold. A part-filled block's tail may still be written to."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._full: dict[bytes, int] = {}
        self._children: defaultdict[bytes, set[int]] = defaultdict(set)

    def __contains__(self, block: int) -> bool:
        return block in self._held

    def tokens_in(self, block: int) -> int:
        """How many tokens of the block others may rely on."""
        return len(self._held[block].tokens) if block in self._held else 0

    def find(self, keys: BlockKeys, tokens: Sequence[int], limit: int) -> tuple[list[int], int]:
        """Blocks that hold the longest cached prefix of tokens[:limit], and its length.

        Of the last block, only a part may be in common.
        """
        blocks: list[int] = []
        while (len(blocks) + 1) * BLOCK_SIZE <= limit:
            block = self._full.get(keys.parent_of(len(blocks) + 1))
            if block is None:
                break
            blocks.append(block)
        length = len(blocks) * BLOCK_SIZE
        wanted = tokens[length : min(length + BLOCK_SIZE, limit)]
        tail, shared = self._best_child(keys.parent_of(len(blocks)), wanted)
        return ([*blocks, tail], length + shared) if tail is not None else (blocks, length)

    def _best_child(self, parent: bytes, wanted: Sequence[int]) -> tuple[int | None, int]:
        best, longest = None, MIN_TAIL - 1
        for block in self._children.get(parent, ()):
            shared = common_prefix(self._held[block].tokens, wanted)
            if shared > longest:
                best, longest = block, shared
        return best, longest

    def add(self, block: int, parent: bytes, tokens: Sequence[int]) -> None:
        """The block holds these tokens now, more than before or for the first time.

        A full block that another one holds already is not added.
        """
        self.remove(block)
        if len(tokens) == BLOCK_SIZE:
            key = chain_key(parent, tokens)
            if key in self._full:
                return
            self._full[key] = block
        self._held[block] = Held(parent, tuple(tokens))
        self._children[parent].add(block)

    def remove(self, block: int) -> None:
        held = self._held.pop(block, None)
        if held is None:
            return
        siblings = self._children[held.parent]
        siblings.discard(block)
        if not siblings:
            del self._children[held.parent]
        if len(held.tokens) == BLOCK_SIZE:
            del self._full[chain_key(held.parent, held.tokens)]


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Leading items that are the same."""
    shorter = min(len(a), len(b))
    return next((i for i in range(shorter) if a[i] != b[i]), shorter)
