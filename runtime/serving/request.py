"""A request: what is wanted, how it stands, how it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from ixsearch.patterns import IxsearchError
from ixsearch.patterns.counting import counted
from ixsearch.patterns.findings import clip
from ixsearch.runtime.interface import Request
from ixsearch.runtime.serving.prefix import BlockKeys
from ixsearch.runtime.sharing import Sources
from ixsearch.runtime.whole_numbers import is_whole

if TYPE_CHECKING:
    import torch


class Finish(Enum):
    """Why a request ended."""

    STOP = "stop"
    """A stop token or a stop string was written."""
    LENGTH = "length"
    """`max_new_tokens` were written."""
    CANCELLED = "cancelled"
    FAILED = "failed"
    """See `Completion.error`."""


@dataclass(frozen=True)
class Wishes:
    """What a request may ask for besides its tokens."""

    stop_strings: tuple[str, ...] = ()
    """Texts that end it, of any number of tokens."""
    prompt_logprobs: bool = False
    sources: Sequence[int] | None = None
    """For each layer the earlier F layer whose indices it reads; default the engine's pattern."""
    on_token: Callable[[int], None] | None = None
    """Called with each new token at once."""

    def __post_init__(self) -> None:
        given = self.stop_strings
        if isinstance(given, str) or not all(isinstance(text, str) for text in given):
            raise IxsearchError(
                f"stop_strings is {clip(given)}: a tuple of strings is needed, also for one"
            )


@dataclass(frozen=True)
class Completion:
    """What came of a request."""

    tokens: tuple[int, ...]
    """The new tokens, a stop token or the tokens of a stop string included."""
    finish: Finish
    error: IxsearchError | None = None
    prompt_logprobs: tuple[float, ...] = ()
    """Of the prompt's tokens from the second on, in nats."""


@dataclass(frozen=True)
class Limits:
    """What one step may hold."""

    tokens: int = 1024
    """Of all requests together; longer prompts are prefilled in chunks."""
    requests: int = 64
    prefill_first: bool = False
    """Requests decode only while none is being prefilled: then the two can be timed apart."""

    def __post_init__(self) -> None:
        if not (is_whole(self.tokens, 1) and is_whole(self.requests, 1)):
            raise IxsearchError(f"{self}: a step holds at least 1 token of 1 request")


def check_length(name: str, request: Request, max_positions: int) -> None:
    """Raises `IxsearchError` for more tokens than a model has positions."""
    prompt, new = len(request.prompt), request.max_new_tokens
    if prompt + max(new, 0) > max_positions:
        raise IxsearchError(
            f"{name}: a prompt of {counted(prompt, 'token')} and {new:,} new ones do not fit in the"
            f" model's {max_positions:,} positions (max_position_embeddings): shorten the prompt or"
            " ask for fewer tokens"
        )


@dataclass(eq=False)
class LiveRequest:
    """A request on its way. Its tokens are computed in order; the rest still has to run."""

    number: int
    """In order of arrival."""
    request: Request
    wishes: Wishes
    sources: Sources
    tokens: list[int]
    """The prompt and what was written so far."""
    keys: BlockKeys
    table: list[int] = field(default_factory=list)
    computed: int = 0
    """Leading tokens whose keys and latents are in the cache."""
    reused: int = 0
    """How many of them others had computed, at its last start."""
    preemptions: int = 0
    prompt_logprobs: dict[int, float] = field(default_factory=dict)
    """By position of the token."""
    completion: Completion | None = None
    drafts: list[int] = field(default_factory=list)
    """Guesses of what follows `tokens`, of the step that runs."""
    draft_state: torch.Tensor | None = None
    """[d]: what the MTP layer gave at the last row, once all but the newest token have run."""

    @property
    def remaining(self) -> int:
        """Tokens still to run before the next one is known."""
        return len(self.tokens) - self.computed

    @property
    def prefilling(self) -> bool:
        return self.remaining > 1

    @property
    def worth_drafting(self) -> int:
        """Drafts that could be written, with the model's own token behind them."""
        if self.draft_state is None or self.remaining != 1:
            return 0
        return max(0, self.request.max_new_tokens - len(self.new) - 1)

    @property
    def new(self) -> tuple[int, ...]:
        return tuple(self.tokens[len(self.request.prompt) :])

    def complete(self, finish: Finish, error: IxsearchError | None = None) -> None:
        ordered = (self.prompt_logprobs[at] for at in sorted(self.prompt_logprobs))
        self.completion = Completion(self.new, finish, error, tuple(ordered))
