"""lm-eval's view of an engine. Importing this imports lm-eval, which is slow: do it late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.patterns.counting import counted
from ixsearch.runtime.interface import Document, Engine, Progress, Request
from ixsearch.runtime.tokenizer import Tokenizer

DEFAULT_NEW_TOKENS = 256
"""lm-eval's own default for tasks that do not say."""


@dataclass(frozen=True)
class _Wish:
    """What a task asks of one generation."""

    until: tuple[str, ...]
    max_new_tokens: int

    @classmethod
    def of(cls, options: dict[str, Any]) -> _Wish:
        if options.get("do_sample") or float(options.get("temperature") or 0) > 0:
            raise IxsearchError(
                "this task asks for sampling, and ixsearch decodes greedily, so that patterns can"
                " be paired: set do_sample to false and temperature to 0"
            )
        until = options.get("until") or ()
        until = (until,) if isinstance(until, str) else tuple(until)
        names = ("max_gen_toks", "max_new_tokens", "max_tokens")
        sizes = [options[name] for name in names if options.get(name)]
        return cls(tuple(stop for stop in until if stop), int((sizes or [DEFAULT_NEW_TOKENS])[0]))


class EngineLM(LM):
    """An engine and its tokenizer, running one pattern, as a language model of lm-eval.

    It counts the positions that wrote or scored an answer, and those of them past `index_topk`.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        pattern: Pattern,
        progress: Progress | None = None,
    ) -> None:
        super().__init__()
        self.engine = engine
        self.tokenizer = tokenizer
        self.pattern = pattern
        self.progress = progress
        self.model = engine.describe()
        self.answered = 0
        self.answered_past_topk = 0
        self._stop_tokens: dict[tuple[str, ...], frozenset[int]] = {}

    @property
    def tokenizer_name(self) -> str:
        return self.tokenizer.name.replace("/", "__")

    @property
    def share_past_topk(self) -> float:
        """Of the answers' tokens so far: those whose queries lie past `index_topk`."""
        return self.answered_past_topk / self.answered if self.answered else 0.0

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Greedy texts, cut before the first `until` string, in one call of the engine."""
        wishes = [_Wish.of(request.args[1]) for request in requests]
        asked = [
            self._request(request.args[0], wish)
            for request, wish in zip(requests, wishes, strict=True)
        ]
        self.engine.set_pattern(self.pattern)
        answers = self.engine.generate(asked, self.progress)
        for request, answer in zip(asked, answers, strict=True):
            self._count(len(request.prompt), len(answer))
        return [self._text(a, wish) for a, wish in zip(answers, wishes, strict=True)]

    def loglikelihood(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[tuple[float, bool]]:
        """Log-likelihood of continuations, and whether greedy decoding would write them.

        Raises:
            IxsearchError: a continuation begins within the first `index_topk` positions. An engine
                scores the tokens past them, where patterns differ, and no others.
        """
        documents = [
            self._continuation(f"request {number}", *request.args)
            for number, request in enumerate(requests)
        ]
        scores = self.engine.score(documents, [self.pattern], self.progress)[0]
        for ((start, stop),) in (document.answers for document in documents):
            self._count(start, stop - start)
        return [(-score.loss_sum, score.matches[0]) for score in scores]

    def loglikelihood_rolling(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[float]:
        """Not given: a text's first `index_topk` tokens are never scored (see `loglikelihood`)."""
        raise IxsearchError(
            "this task asks for the likelihood of whole texts, and engines score only the tokens"
            f" past index_topk = {self.model.index_topk}: score the texts as documents instead"
            " (--documents), or use a task that generates"
        )

    def _request(self, context: str, wish: _Wish) -> Request:
        prompt = tuple(self.tokenizer.encode(context))
        room = self.model.max_positions - len(prompt)
        if room < wish.max_new_tokens:
            raise IxsearchError(
                f"a prompt of {counted(len(prompt), 'token')} and {wish.max_new_tokens:,} new ones"
                f" do not fit in the model's {self.model.max_positions:,} positions: ask for a"
                " shorter context, fewer few-shot examples or shorter answers"
            )
        return Request(prompt, wish.max_new_tokens, self._stops(wish.until))

    def _stops(self, until: tuple[str, ...]) -> frozenset[int]:
        """Tokens that end a text, or that write all of an `until` string by themselves."""
        if until not in self._stop_tokens:
            texts = self.tokenizer.token_texts if until else []
            inside = {i for i, text in enumerate(texts) if any(stop in text for stop in until)}
            named = {self.tokenizer.id_of(stop) for stop in until} - {None}
            self._stop_tokens[until] = frozenset(inside | named) | self.tokenizer.eos_token_ids
        return self._stop_tokens[until]

    def _text(self, answer: tuple[int, ...], wish: _Wish) -> str:
        if answer and answer[-1] in self.tokenizer.eos_token_ids:
            answer = answer[:-1]
        text = self.tokenizer.decode(answer)
        ends = [text.find(stop) for stop in wish.until if stop in text]
        return text[: min(ends)] if ends else text

    def _count(self, prompt: int, new: int) -> None:
        # The first new token is predicted from the last position of the prompt.
        first, end = prompt - 1, prompt + new - 1
        self.answered += new
        self.answered_past_topk += max(0, end - max(first, self.model.index_topk))

    def _continuation(self, name: str, context: str, continuation: str) -> Document:
        # As lm-eval's own models do: spaces between the two belong to the continuation.
        prefix = self.tokenizer.encode(context.rstrip())
        tokens = tuple(self.tokenizer.encode(context + continuation))
        if len(prefix) <= self.model.index_topk:
            raise IxsearchError(
                f"{name}: the continuation begins at position {len(prefix)}, and engines score only"
                f" tokens past index_topk = {self.model.index_topk}, where patterns differ:"
                " give the task a longer context, or use a task that generates"
            )
        if len(tokens) > self.model.max_positions:
            raise IxsearchError(
                f"{name}: {counted(len(tokens), 'token')}, and the model has"
                f" {self.model.max_positions:,} positions: ask for fewer few-shot examples"
            )
        return Document(name, tokens, ((len(prefix), len(tokens)),))
