"""Documents on their way through the layers, under many patterns at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import torch

from ixsearch.runtime.cache import BLOCK_SIZE, LayerCache, blocks_for
from ixsearch.runtime.held import HeldStates
from ixsearch.runtime.interface import Document
from ixsearch.runtime.model import DecoderLayer, DsaModel
from ixsearch.runtime.state import State, joined, topk_on
from ixsearch.runtime.step import Part, Step
from ixsearch.runtime.trie import PatternTrie, Prefix


@dataclass
class ScoringPass:
    """Some documents, flattened into one step, and their state under each live prefix.

    On CPU a pass is one document: its shapes, and so its bits, never depend on the batch.
    """

    model: DsaModel
    documents: Sequence[Document]
    trie: PatternTrie
    held: HeldStates
    place: torch.device
    """Where states rest between layers."""
    states: dict[Prefix, State] = field(default_factory=dict)

    def __post_init__(self) -> None:
        model = self.model
        lengths = [len(document.tokens) for document in self.documents]
        blocks = [blocks_for(length) for length in lengths]
        self.first_blocks = [0, *accumulate(blocks)]
        self.first_rows = [0, *accumulate(lengths)]
        parts = [
            Part(range(first, first + count), 0, length)
            for first, count, length in zip(self.first_blocks, blocks, lengths, strict=False)
        ]
        self.step = Step.of(parts, model.device, decode_width=0)
        for parent in self.trie.starts(0):
            self.states[parent] = State(self._embedded().to(self.place), None)

    @property
    def rows(self) -> int:
        return self.first_rows[-1]

    def parents(self, number: int) -> list[Prefix]:
        """Prefixes whose states go through a layer; what is kept of them is fetched."""
        for start in self.trie.starts(number) if number else ():
            self.states[start] = self._from_held(start)
        level = {prefix[:-1] for prefix in self.trie.levels[number]}
        return [prefix for prefix in self.states if prefix in level]

    def through(self, layer: DecoderLayer, number: int, parent: Prefix) -> dict[Prefix, State]:
        """What becomes of one state in a layer, as F and as S where the trie has them: only it, and
        what becomes of it, need be on the device. The pass lets go of it.
        """
        children = [p for p in (parent + "F", parent + "S") if p in self.trie.levels[number]]
        resting = self.states.pop(parent)
        state = resting.on(self.model.device)
        return {p: self._through(layer, state, p[-1] == "F", resting) for p in children}

    def take(self, found: Sequence[dict[Prefix, State]]) -> None:
        """Go on with what a layer gave, parent after parent."""
        self.states = {prefix: state for states in found for prefix, state in states.items()}
        for prefix, state in self.states.items():
            self._offer(prefix, state)

    def at_end(self, letters: str) -> State:
        """The state of a whole pattern, at its place."""
        return self.states[letters] if letters in self.states else self._from_held(letters)

    def _embedded(self) -> torch.Tensor:
        tokens = [token for document in self.documents for token in document.tokens]
        return self.model.embed(torch.tensor(tokens, device=self.model.device))

    def _through(self, layer: DecoderLayer, state: State, full: bool, resting: State) -> State:
        """`resting` is `state` at its place: a top-k that is carried on stays the one there."""
        x_Td, carried = layer(
            state.x_Td, full, state.carried, self._scratch(), self.model.table, self.step
        )
        kept = resting.carried if carried is state.carried else topk_on(carried, self.place)
        return State(x_Td.to(self.place), kept)

    def _scratch(self) -> LayerCache:
        """A layer's cache: nothing of a layer is needed once the layer is done."""
        model, blocks = self.model, self.first_blocks[-1]
        return LayerCache.allocate(model.config, True, blocks, model.cache_format, model.device)

    def _slots(self) -> list[int]:
        return [first * BLOCK_SIZE for first in self.first_blocks[:-1]]

    def _from_held(self, prefix: Prefix) -> State:
        states = [self.held.of(document.digest)[prefix] for document in self.documents]
        return joined(states, self._slots()) if len(states) > 1 else states[0]

    def _offer(self, prefix: Prefix, state: State) -> None:
        if len(self.documents) == 1:
            self.held.offer(self.documents[0].digest, prefix, state)
            return
        if not self.held.wants(prefix):
            return
        for i, (document, slot) in enumerate(zip(self.documents, self._slots(), strict=True)):
            own = state.rows(self.first_rows[i], self.first_rows[i + 1], slot)
            self.held.offer(document.digest, prefix, own)
