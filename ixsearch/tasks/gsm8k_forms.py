"""Two ways to make a GSM8K question long and keep its answer.

`examples`: solved problems come first, as in few-shot gsm8k, only many more of them.

`scattered`: the statements of many problems are cut into sentences and mixed. Each sentence names
its problem and the sentences of a problem keep their order, so the question, which names its
problem too, can be answered by whoever finds them:

    Problem 31: Weng earns $12 an hour for babysitting.
    Problem 8: Betty is saving money for a new wallet which costs $100.
    Problem 31: Yesterday, she just did 50 minutes of babysitting.
    ...
    Question: Problem 31: How much did she earn?
    Answer:
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.gsm8k import Gsm8kProblem
from ixsearch.tasks.long_context import ANSWER_END, LongContext, fit
from ixsearch.tasks.question import Question
from ixsearch.tasks.sentences import facts_and_question

SOLVED = 4
"""Solved problems behind scattered facts, to show the form of an answer."""
HEAD = (
    "These are the statements of many problems, sentence by sentence, mixed. Each line names its"
    " problem; the sentences of a problem are in order.\n\n"
)


@dataclass(frozen=True)
class Scene:
    """What a context is made of and how long it shall be."""

    asked: Sequence[Gsm8kProblem]
    others: Sequence[Gsm8kProblem]
    """Problems to fill the context with, the first ones first; none of them is asked."""
    tokens: int
    size: Callable[[LongContext], int]
    tokenizer: Tokenizer
    seed: str

    def cost(self, text: str) -> int:
        return len(self.tokenizer.encode(text, special=False))


def after_examples(scene: Scene) -> LongContext:
    """The questions after as many solved problems as fit."""

    def assemble(solved: Sequence[Gsm8kProblem]) -> LongContext:
        return LongContext(
            "".join(map(_solved, solved)),
            tuple(Question(_ask(p.question), p.solution) for p in scene.asked),
        )

    return fit(assemble, scene.others, lambda p: scene.cost(_solved(p)), scene.size, scene.tokens)


def among_scattered(scene: Scene) -> LongContext:
    """The questions after their facts, scattered among the facts of as many problems as fit."""
    solved, others = scene.others[:SOLVED], scene.others[SOLVED:]

    def assemble(fillers: Sequence[Gsm8kProblem]) -> LongContext:
        return _scatter(scene.asked, solved, fillers, Random(scene.seed))

    def cost(problem: Gsm8kProblem) -> int:
        facts, _ = facts_and_question(problem.question)
        return scene.cost("".join(f"Problem 100: {fact}\n" for fact in facts))

    return fit(assemble, others, cost, scene.size, scene.tokens)


def can_be_scattered(problem: Gsm8kProblem) -> bool:
    """Does it state at least two sentences, then end in a question?"""
    parts = facts_and_question(problem.question)
    return parts is not None and len(parts[0]) >= 2


FORMS: dict[str, Callable[[Scene], LongContext]] = {
    "examples": after_examples,
    "scattered": among_scattered,
}


def _scatter(
    asked: Sequence[Gsm8kProblem],
    solved: Sequence[Gsm8kProblem],
    fillers: Sequence[Gsm8kProblem],
    rng: Random,
) -> LongContext:
    problems = [*asked, *solved, *fillers]
    numbers = rng.sample(range(1, len(problems) + 1), len(problems))
    parts = [facts_and_question(problem.question) for problem in problems]
    turns = [i for i, (facts, _) in enumerate(parts) for _ in facts]
    rng.shuffle(turns)
    waiting = [iter(facts) for facts, _ in parts]
    lines = [f"Problem {numbers[i]}: {next(waiting[i])}\n" for i in turns]
    questions = [
        Question(_ask(f"Problem {number}: {question}"), problem.solution)
        for number, (_, question), problem in zip(numbers, parts, problems, strict=True)
    ]
    first, end = len(asked), len(asked) + len(solved)
    shown = [f"{q.prompt} {q.solution}{ANSWER_END}" for q in questions[first:end]]
    return LongContext(f"{HEAD}{''.join(lines)}\n{''.join(shown)}", tuple(questions[:first]))


def _ask(question: str) -> str:
    return f"Question: {question}\nAnswer:"


def _solved(problem: Gsm8kProblem) -> str:
    return f"{_ask(problem.question)} {problem.solution}{ANSWER_END}"
