"""Training documents: a curriculum of growing worlds, and the batches that workers make of them."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Iterator
from random import Random

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from ixsearch.tasks.words import BOS, PAD, VOCABULARY, split
from ixsearch.tasks.worlds import (
    DOCUMENT_TOKENS,
    NUM_ITEMS,
    NUM_PEOPLE,
    World,
    draw_price_question,
    draw_problem,
)

PADDING, CONTEXT, SOLUTION, RECITED = range(4)
"""The kinds of tokens."""

Segments = list[tuple[str, int]]
TOKEN_ID = {piece: number for number, piece in enumerate(VOCABULARY)}
_FACT = re.compile(r"( .*? (?:costs|wants|knows|has))( .*)(\.)")


def encode(text: str) -> list[int]:
    """As the tokenizer does, without `<bos>`."""
    return [TOKEN_ID[piece] for piece in split(text)]


def draw_lesson(rng: Random, stage: float, tokens: int = DOCUMENT_TOKENS) -> Segments:
    """At least `tokens` tokens of text, each piece of it with its kind.

    `stage` goes from 0 to 1: from a few facts, mostly recited, to whole worlds, mostly asked about.
    """
    world = _draw_world(rng, stage)
    facts = world.facts()
    rng.shuffle(facts)
    text = f"Facts:{''.join(facts)}\n"
    size = 1 + len(split(text))
    if rng.random() < 0.6 - 0.5 * stage:
        return [(text, CONTEXT), *_recite(rng, facts, tokens - size)]
    segments = [(text, CONTEXT)]
    while size < tokens:
        priced = rng.random() < 0.3 - 0.15 * stage
        problem = (draw_price_question if priced else draw_problem)(rng, world)
        answer = f" {problem.solution}\n"
        segments += [(problem.question, CONTEXT), (answer, SOLUTION)]
        size += len(split(problem.question)) + len(split(answer))
    return segments


def _draw_world(rng: Random, stage: float) -> World:
    size = 0.1 + 0.9 * stage
    if rng.random() > 0.6:
        size *= rng.uniform(0.05, 1.0)
    return World.draw(rng, 4 + int(size * (NUM_ITEMS - 4)), 3 + int(size * (NUM_PEOPLE - 3)))


def _recite(rng: Random, facts: list[str], tokens: int) -> Segments:
    """The facts again and again, each time in another order; what they say is to be known."""
    segments: Segments = []
    while tokens > 0:
        rng.shuffle(facts)
        segments.append(("Facts:", CONTEXT))
        for fact in facts:
            cue, value, stop = _FACT.fullmatch(fact).groups()
            segments += [(cue, CONTEXT), (value, RECITED), (stop, CONTEXT)]
            tokens -= len(split(fact))
        segments.append(("\n", CONTEXT))
    return segments


def fill(segments: Segments, tokens: int) -> tuple[list[int], list[int]]:
    """Token ids and kinds of exactly `tokens` positions, `<bos>` first: cut or padded."""
    ids, kinds = [TOKEN_ID[BOS]], [CONTEXT]
    for text, kind in segments:
        piece = encode(text)
        ids += piece
        kinds += [kind] * len(piece)
    missing = max(0, tokens - len(ids))
    ids += [TOKEN_ID[PAD]] * missing
    kinds += [PADDING] * missing
    return ids[:tokens], kinds[:tokens]


class LessonStream(IterableDataset):
    """Batches of lessons without end: ids and kinds, int16 and int8 [batch, tokens].

    All workers draw from the stage that is set at the time.
    """

    def __init__(self, seed: int, batch: int, tokens: int, stage: float = 0.0) -> None:
        self.seed, self.batch, self.tokens = seed, batch, tokens
        self._stage = multiprocessing.get_context("fork").Value("d", stage)

    @property
    def stage(self) -> float:
        return self._stage.value

    @stage.setter
    def stage(self, value: float) -> None:
        self._stage.value = value

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        worker = get_worker_info()
        rng = Random(f"lessons {self.seed} {worker.id if worker else 0}")
        while True:
            stage = self.stage
            rows = [
                fill(draw_lesson(rng, stage, self.tokens), self.tokens) for _ in range(self.batch)
            ]
            ids, kinds = zip(*rows, strict=True)
            yield torch.tensor(ids, dtype=torch.int16), torch.tensor(kinds, dtype=torch.int8)

    def batches(self, workers: int, pin: bool) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Batches made by `workers` processes, in a fixed order; 0: made in this one."""
        return iter(
            DataLoader(
                self,
                batch_size=None,
                num_workers=workers,
                prefetch_factor=3 if workers else None,
                pin_memory=pin,
                multiprocessing_context="fork" if workers else None,
            )
        )
