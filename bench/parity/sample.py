"""What every setting is asked: documents, patterns, prompts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import Document, Request
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import bundled_documents, bundled_questions

ALL_FULL = "F" * 16
TWELVE, TEN, EIGHT = "FFFFFFFFFFSSSFSF", "FSFFFFFSFFSSSFSF", "FSFFFSFSFFSSSSSF"
"""Searched ones: 12 and 10 F lose nothing, 8 F a third of the answers."""
RANDOM_PROMPT = 200
"""Tokens. Nothing the model knows, so that its next tokens are often near-ties."""
VOCABULARY = 397


@dataclass(frozen=True)
class Sample:
    """How much of it."""

    documents: int = 6
    """As many as `ixsearch optimize` calibrates on, and the same."""
    compared: tuple[str, ...] = (ALL_FULL, TWELVE, TEN, EIGHT)
    """Patterns of which logits and selections are compared."""
    ranked: int = 12
    """Patterns that are scored as a search does."""
    decoded: tuple[str, ...] = (ALL_FULL, TEN)
    questions: int = 24
    random_prompts: int = 12
    new_tokens: int = 32

    @property
    def shorter(self) -> Sample:
        """For fp8 caches, which the CPU reads slowly."""
        ends = self.compared[0], self.compared[-1]
        ranked = (self.ranked + 1) // 2
        return replace(self, compared=ends, ranked=ranked, decoded=self.decoded[:1])

    def texts(self) -> list[Document]:
        tokenizer = Tokenizer.load(MODEL_FOLDER)
        return bundled_documents("calibration", self.documents, tokenizer)

    def patterns(self) -> list[Pattern]:
        """Searched, uniform and random ones, no two the same."""
        uniform = (str(Pattern.uniform(16, count)) for count in (12, 8, 4))
        known = (TWELVE, TEN, EIGHT, *uniform)
        letters = dict.fromkeys((*known, *_random_patterns()))
        return [Pattern(each) for each in list(letters)[: self.ranked]]

    def requests(self) -> list[Request]:
        """Questions of the test split, then random tokens."""
        tokenizer, draw = Tokenizer.load(MODEL_FOLDER), Random(0)
        asked = [tokenizer.encode(q.prompt) for q in bundled_questions(self.questions)]
        asked += [
            [draw.randrange(3, VOCABULARY) for _ in range(RANDOM_PROMPT)]
            for _ in range(self.random_prompts)
        ]
        return [Request(tuple(prompt), self.new_tokens) for prompt in asked]


FULL = Sample()
QUICK = Sample(1, (ALL_FULL, EIGHT), 4, (ALL_FULL,), questions=2, random_prompts=2, new_tokens=8)


def _random_patterns() -> list[str]:
    draw, found = Random(0), []
    for full in (14, 12, 10, 8) * 4:
        chosen = {0, *draw.sample(range(1, 16), full - 1)}
        found.append("".join("F" if layer in chosen else "S" for layer in range(16)))
    return found
