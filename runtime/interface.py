"""The engine seam: all that search, scoring and measuring may ask of a model.

`native` (this package) is the first engine; adapters to serving engines come behind the same calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.patterns.counting import counted
from ixsearch.runtime.whole_numbers import is_whole

Progress = Callable[[float], None]
"""Called now and then with the share of the work that is done, from 0 to 1."""


@dataclass(frozen=True)
class Document:
    """Tokens to score. `answers`: spans `(start, stop)` of tokens that count; none: all count.

    The token at position t is predicted from position t - 1. It is scored when position
    t - 1 >= `index_topk`: earlier queries see their whole context whatever the pattern.
    """

    name: str
    tokens: tuple[int, ...]
    answers: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if len(self.tokens) < 2:
            length = counted(len(self.tokens), "token")
            raise IxsearchError(f"document {self.name} has {length}: 2 are needed")
        for start, stop in self.answers:
            if not 1 <= start < stop <= len(self.tokens):
                raise IxsearchError(
                    f"document {self.name}: answer [{start}, {stop}) is empty or lies outside of"
                    f" tokens 1 to {len(self.tokens)}"
                )

    @property
    def digest(self) -> str:
        """Hash of tokens and answers, hex."""
        text = f"{list(self.tokens)}{list(self.answers)}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def scored_targets(self, index_topk: int) -> list[int]:
        """Positions of the tokens that are scored, ascending."""
        spans = self.answers or ((1, len(self.tokens)),)
        return sorted({t for a, b in spans for t in range(max(a, index_topk + 1), b)})


@dataclass(frozen=True)
class ModelInfo:
    """What an engine says of the model it holds."""

    name: str
    architecture: str
    model_type: str
    num_layers: int
    index_topk: int
    indexer_layers: tuple[int, ...]
    """Layers that have indexer weights; all others can only be S."""
    vocab_size: int
    max_positions: int
    config_hash: str
    """Hash of the configuration, without the keys that set a pattern."""
    weights_hash: str
    default_pattern: Pattern
    """The one that the checkpoint's own configuration asks for, S where there is no indexer."""
    device: str
    dtype: str
    versions: dict[str, str] = field(default_factory=dict)
    cache: str = "float"
    """How keys and values are cached: `float` of `dtype`, or an fp8 form."""

    @property
    def baseline(self) -> Pattern:
        """F wherever the checkpoint has an indexer: all-F, unless it was trained with sharing."""
        return Pattern.from_full(self.num_layers, self.indexer_layers)


@dataclass(frozen=True)
class DocumentScore:
    """One pattern on one document, against all-F on the same document."""

    tokens: int
    """Scored tokens; the sums below run over them."""
    loss_sum: float
    """Sum of the negative log-likelihoods, nats."""
    divergence_sum: float
    """Sum of KL(all-F || pattern) a token, nats."""
    matches: tuple[bool, ...]
    """For each answer span: is every token of it the argmax? Scored or not."""


@dataclass(frozen=True)
class Request:
    """A prompt for greedy decoding. Prompts that begin alike share their prefill."""

    prompt: tuple[int, ...]
    max_new_tokens: int
    stop_tokens: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if not is_whole(self.max_new_tokens):
            raise IxsearchError(f"max_new_tokens is {self.max_new_tokens!r}: 0 or more is needed")


@dataclass(frozen=True)
class Workload:
    """What to time: `batch` requests of `context` tokens, then `new_tokens` decode steps."""

    context: int
    batch: int
    new_tokens: int
    seed: int = 0


@dataclass(frozen=True)
class Timing:
    """Seconds for one run of a workload."""

    prefill_s: float
    """All prompts of the workload, together."""
    decode_s: float
    """All decode steps, together."""


@dataclass(frozen=True, eq=False)
class PairEffects:
    """What it does to the output that one layer reads another's indices, to first order.

    The effect e_ij of layer j reading layer i is a random variable of mean 0; the divergence of a
    pattern is about 1/2 E[(sum of its layers' e)^2] (`ixsearch.runtime.pair_effects`).
    """

    effects_NVLL: np.ndarray
    """[document, draw, source i, layer j]; 0 where the layer reads what the baseline reads."""
    tokens: tuple[int, ...]
    """Scored tokens of each document."""


class Engine(Protocol):
    """What runs the model."""

    layer_tokens: int
    """What scoring has cost so far: tokens through a layer, summed over layers; a backward pass
    counts as two."""

    def describe(self) -> ModelInfo: ...

    def score(
        self,
        documents: Sequence[Document],
        patterns: Sequence[Pattern],
        progress: Progress | None = None,
    ) -> list[list[DocumentScore]]:
        """Score every pattern on every document: `result[pattern][document]`.

        On CPU a score is the same, bit for bit, whatever else is in the batch.

        Raises:
            IxsearchError: a document of another vocabulary; NaN or infinity, with the document, the
                pattern and the first layer named; memory that is short.
        """
        ...

    def score_cost(self, patterns: Sequence[Pattern]) -> float:
        """Cost of scoring these patterns in one batch, in forwards of the whole model, when of
        earlier batches only the baseline's states are kept.
        """
        ...

    def keep_near(self, patterns: Sequence[Pattern]) -> None:
        """Patterns to come begin like these and like the baseline: keep the states of their
        prefixes, as memory allows, and drop others.
        """
        ...

    def pair_effects(
        self,
        documents: Sequence[Document],
        draws: int,
        seed: int,
        progress: Progress | None = None,
    ) -> PairEffects | None:
        """Effects of every pair of layers; None where the engine cannot compute them."""
        ...

    def index_overlap(self, documents: Sequence[Document]) -> np.ndarray:
        """Mean share [L, L] of the indices of one layer that another has too, in the baseline, over
        tokens past `index_topk`.

        Raises:
            IxsearchError: the engine cannot compare them; there is no such token.
        """
        ...

    def set_pattern(self, pattern: Pattern) -> None:
        """The pattern for `generate` and `measure`."""
        ...

    def generate(
        self, requests: Sequence[Request], progress: Progress | None = None
    ) -> list[tuple[int, ...]]:
        """Greedy new tokens for every request, a stop token included when one was produced."""
        ...

    def measure(self, workload: Workload) -> Timing:
        """Run the workload once on the current pattern and time it."""
        ...
