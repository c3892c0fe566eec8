"""One long text that several questions follow, made to a wanted number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ixsearch.patterns import IxsearchError
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.question import Question

T = TypeVar("T")

ANSWER_END = "\n\n"
PATIENCE = 50
"""Pieces in a row that no longer fit, after which the text is full."""
FULL = 0.9
"""Share of the wanted tokens that must be reached."""


@dataclass(frozen=True)
class LongContext:
    """A shared text, and questions that may follow it: their prompts lack that text."""

    shared: str
    asked: tuple[Question, ...]

    def questions(self) -> list[Question]:
        """Each question right behind the shared text: none sees another, nor its solution."""
        return [Question(self.shared + q.prompt, q.solution) for q in self.asked]

    def segments(self) -> list[tuple[str, bool]]:
        """One document with all questions and solutions, each piece marked: is it a solution?"""
        pieces = [(self.shared, False)]
        for question in self.asked:
            pieces += [(question.prompt, False), (f" {question.solution}{ANSWER_END}", True)]
        return pieces

    def prompt_tokens(self, tokenizer: Tokenizer) -> int:
        """Tokens of the longest prompt."""
        longest = max((q.prompt for q in self.asked), key=lambda text: _count(tokenizer, text))
        return len(tokenizer.encode(self.shared + longest))

    def document_tokens(self, tokenizer: Tokenizer) -> int:
        """Tokens of the document that `segments` makes."""
        first, *rest = (text for text, _ in self.segments())
        return len(tokenizer.encode(first)) + sum(_count(tokenizer, text) for text in rest)


def fit(
    assemble: Callable[[Sequence[T]], LongContext],
    candidates: Sequence[T],
    cost: Callable[[T], int],
    size: Callable[[LongContext], int],
    wanted: int,
) -> LongContext:
    """The context with as many of the candidates, in their order, as `wanted` tokens hold.

    Raises:
        IxsearchError: not even one fits, or all together leave the context too short.
    """
    least = size(assemble(()))
    taken = _take(candidates, cost, wanted - least)
    while taken:
        made = assemble(taken)
        reached = size(made)
        if reached <= wanted:
            _check_full(reached, wanted, all_taken=len(taken) == len(candidates))
            return made
        taken.pop()
    if not candidates:
        raise IxsearchError(
            "the train split has too few problems to fill a context with: give GSM8K's own"
            " train.jsonl, or a longer one"
        )
    smallest = least + min(map(cost, candidates[:PATIENCE]))
    raise IxsearchError(
        f"a context of {wanted} tokens is too short for these questions:"
        f" ask for at least {smallest} (--context)"
    )


def _take(candidates: Sequence[T], cost: Callable[[T], int], room: int) -> list[T]:
    taken, passed = [], 0
    for candidate in candidates:
        if passed == PATIENCE:
            break
        tokens = cost(candidate)
        if tokens > room:
            passed += 1
            continue
        taken.append(candidate)
        room -= tokens
        passed = 0
    return taken


def _check_full(reached: int, wanted: int, all_taken: bool) -> None:
    if all_taken and reached < FULL * wanted:
        raise IxsearchError(
            f"all problems of the train split make a context of {reached} tokens, and {wanted} are"
            " wanted: ask for a shorter one (--context)"
        )


def _count(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode(text, special=False))
