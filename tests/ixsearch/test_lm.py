"""EngineLM: what lm-eval asks of a model, on a scripted engine."""

from __future__ import annotations

import pytest
from lm_eval.api.instance import Instance
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.interface import DocumentScore, ModelInfo, Request
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.lm import EngineLM

PATTERN = Pattern("FFSS")
TOPK = 20


def byte_tokenizer() -> Tokenizer:
    """One token a byte, and `</s>` for the end."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Backend(models.BPE({char: i for i, char in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["</s>"])
    return Tokenizer(backend, "made/by-hand", {"eos_token": "</s>"})


class ScriptedEngine:
    """Writes one text after every prompt, and scores every token 0.5 nats."""

    def __init__(self, tokenizer: Tokenizer, text: str = "") -> None:
        self.tokens = tokenizer.encode(text)
        self.calls: list[list[Request]] = []
        self.patterns: list[Pattern] = []

    def describe(self) -> ModelInfo:
        return ModelInfo(
            "scripted", "X", "x", 4, TOPK, (0, 1, 2, 3), 257, 400, "", "", PATTERN, "cpu", "float32"
        )

    def set_pattern(self, pattern: Pattern) -> None:
        self.patterns.append(pattern)

    def generate(self, requests, progress=None):
        self.calls.append(list(requests))
        return [self._write(request) for request in requests]

    def _write(self, request: Request) -> tuple[int, ...]:
        new: list[int] = []
        for token in self.tokens[: request.max_new_tokens]:
            new.append(token)
            if token in request.stop_tokens:
                break
        return tuple(new)

    def score(self, documents, patterns, progress=None):
        self.patterns += patterns
        targets = [document.scored_targets(TOPK) for document in documents]
        return [[DocumentScore(len(t), 0.5 * len(t), 0.0, (True,)) for t in targets]]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return byte_tokenizer()


def ask(lm: EngineLM, *pairs, kind: str = "generate_until") -> list:
    requests = [Instance(kind, {}, pair, i) for i, pair in enumerate(pairs)]
    return getattr(lm, kind)(requests)


def lm_that_writes(tokenizer: Tokenizer, text: str) -> EngineLM:
    return EngineLM(ScriptedEngine(tokenizer, text), tokenizer, PATTERN)


@pytest.mark.parametrize(
    ("written", "until", "expected"),
    [
        ("12\nmore", ["\n"], "12"),
        ("12\nmore", "\n", "12"),
        ("7 Question: next", ["Question:", "\n\n"], "7 "),
        ("a</s>b", ["Question:"], "a"),
        ("abc", [], "abc"),
        ("abc", ["", "z"], "abc"),
        ("no end", ["Question:"], "no end"),
        ("one two three", ["two", "one t"], ""),
    ],
)
def test_texts_are_cut_where_the_task_says(tokenizer, written, until, expected):
    assert ask(lm_that_writes(tokenizer, written), ("Q", {"until": until})) == [expected]


def test_one_call_with_the_pattern_and_stops_that_end_early(tokenizer):
    lm = lm_that_writes(tokenizer, "12\nmore")
    lengths = {"until": ["\n"], "max_gen_toks": 5}
    assert ask(lm, ("first", lengths), ("second", lengths)) == ["12", "12"]
    (call,) = lm.engine.calls
    assert [request.max_new_tokens for request in call] == [5, 5]
    assert call[0].prompt == tuple(tokenizer.encode("first"))
    assert call[0].stop_tokens == {tokenizer.id_of("Ċ"), tokenizer.id_of("</s>")}
    assert lm.engine.patterns == [PATTERN]


@pytest.mark.parametrize(
    ("options", "length"),
    [({}, 256), ({"max_gen_toks": 7}, 7), ({"max_new_tokens": 8}, 8), ({"max_tokens": 9}, 9)],
)
def test_how_long_an_answer_may_be(tokenizer, options, length):
    lm = lm_that_writes(tokenizer, "x" * 300)
    assert ask(lm, ("Q", options)) == ["x" * length]


@pytest.mark.parametrize(
    ("prompt", "new", "past"), [(5, 10, 0), (20, 1, 0), (21, 1, 1), (18, 10, 7), (50, 10, 10)]
)
def test_positions_past_topk_are_counted(tokenizer, prompt, new, past):
    """Token p is predicted from position p - 1, which sees a pattern from `index_topk` on."""
    lm = lm_that_writes(tokenizer, "x" * new)
    ask(lm, ("p" * prompt, {}))
    assert (lm.answered, lm.answered_past_topk) == (new, past)
    assert lm.share_past_topk == past / new
    stands = [t for t in range(prompt, prompt + new) if t - 1 >= TOPK]
    assert len(stands) == past


def test_nothing_generated_sees_nothing(tokenizer):
    assert lm_that_writes(tokenizer, "").share_past_topk == 0


@pytest.mark.parametrize("options", [{"do_sample": True}, {"temperature": 0.7}])
def test_sampling_is_refused(tokenizer, options):
    with pytest.raises(IxsearchError, match="decodes greedily"):
        ask(lm_that_writes(tokenizer, "x"), ("Q", options))


def test_a_prompt_without_room_is_refused(tokenizer):
    with pytest.raises(IxsearchError, match="a prompt of 390 tokens and 20 new ones do not fit"):
        ask(lm_that_writes(tokenizer, "x"), ("p" * 390, {"max_gen_toks": 20}))


def test_likelihood_of_continuations_past_topk(tokenizer):
    lm = lm_that_writes(tokenizer, "")
    context = "c" * 30
    answers = ask(lm, (context, " yes"), (f"{context} ", "no"), kind="loglikelihood")
    assert answers == [(-2.0, True), (-1.5, True)]
    assert lm.engine.patterns == [PATTERN]
    assert (lm.answered, lm.share_past_topk) == (4 + 3, 1.0)


def test_likelihood_that_an_engine_cannot_give_is_refused(tokenizer):
    lm = lm_that_writes(tokenizer, "")
    assert ask(lm, ("c" * 21, "x"), kind="loglikelihood") == [(-0.5, True)]
    with pytest.raises(IxsearchError, match="request 0: the continuation begins at position 20"):
        ask(lm, ("c" * 20, "x"), kind="loglikelihood")
    with pytest.raises(IxsearchError, match="401 tokens, and the model has 400"):
        ask(lm, ("c" * 400, "x"), kind="loglikelihood")
    with pytest.raises(IxsearchError, match="only the tokens past index_topk = 20"):
        ask(lm, ("text",), kind="loglikelihood_rolling")


def test_the_name_can_name_a_file(tokenizer):
    assert lm_that_writes(tokenizer, "").tokenizer_name == "made__by-hand"
