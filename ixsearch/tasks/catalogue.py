"""Every task, and what a model would meet in it: how many tokens, and how far past `index_topk`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import median

from ixsearch.patterns import IxsearchError
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import bundled_questions, bundled_short_questions
from ixsearch.tasks.gsm8k import Gsm8kData
from ixsearch.tasks.gsm8k_long import askable, gsm8k_long_questions
from ixsearch.tasks.lm_task import GSM8K_LONG, WORD_PROBLEMS, LmTask
from ixsearch.tasks.question import Question
from ixsearch.tasks.visibility import sees_patterns

SAMPLE = 32
"""Questions that are measured: four contexts of the long tasks."""
SHOTS = 5


@dataclass(frozen=True)
class Setting:
    """What a task is measured for. `context` is the wanted length of long prompts."""

    tokenizer: Tokenizer
    index_topk: int
    max_positions: int | None
    is_bundled: bool
    gsm8k: Gsm8kData | None
    context: int
    seed: int = 0


@dataclass(frozen=True)
class Task:
    """A kind of questions. Each `draw` gives the first so many of them, fewer if there are fewer.

    `available` is how many there are; None: as many as one wants. Both, and `draw`, may raise
    `IxsearchError`: the task is not for this setting.
    """

    name: str
    description: str
    max_new_tokens: int
    available: Callable[[Setting], int | None]
    draw: Callable[[Setting, int], Sequence[Question]]
    lm_task: LmTask | None
    """How to write it for lm-eval; None: lm-eval has it."""


@dataclass(frozen=True)
class TaskFigures:
    """What a model meets in a task. The figures are None where it cannot be asked."""

    name: str
    description: str
    note: str | None = None
    """Why it cannot be asked."""
    questions: int | None = None
    """None: as many as one wants."""
    sampled: int = 0
    """Questions that the following was measured on."""
    prompt_tokens: tuple[int, float, int] | None = None
    """Minimum, median, maximum."""
    share_past_topk: float | None = None
    """Of the positions that write the reference solutions: those past `index_topk`."""

    @property
    def sees_patterns(self) -> bool | None:
        return None if self.share_past_topk is None else sees_patterns(self.share_past_topk)


def measure_task(task: Task, setting: Setting, sample: int = SAMPLE) -> TaskFigures:
    """Tokens of a sample of prompts and of their solutions. Runs no model."""
    said = TaskFigures(task.name, task.description)
    try:
        said = replace(said, questions=task.available(setting))
        questions = task.draw(setting, sample)
        encode = setting.tokenizer.encode
        sizes = [
            (len(encode(q.prompt)), len(encode(f" {q.solution}", special=False))) for q in questions
        ]
    except IxsearchError as error:
        return replace(said, note=str(error))
    prompts = [prompt for prompt, _ in sizes]
    written = sum(new for _, new in sizes)
    # The first new token is predicted from the last position of the prompt.
    past = sum(max(0, p - 1 + new - max(p - 1, setting.index_topk)) for p, new in sizes)
    return replace(
        said,
        note=_too_long(max(prompts) + task.max_new_tokens, setting.max_positions),
        sampled=len(sizes),
        prompt_tokens=(min(prompts), median(prompts), max(prompts)),
        share_past_topk=past / written,
    )


def _too_long(needed: int, there: int | None) -> str | None:
    if there is None or needed <= there:
        return None
    return f"too long for this model: {needed} positions are needed, it has {there}"


def _only_bundled(setting: Setting) -> None:
    if not setting.is_bundled:
        raise IxsearchError("only for the model that comes with ixsearch: it is in its language")


def _need_gsm8k(setting: Setting) -> Gsm8kData:
    if setting.gsm8k is None:
        raise IxsearchError("give --gsm8k: its questions do not come with ixsearch")
    return setting.gsm8k


def _word_problems(form: str, description: str) -> Task:
    def draw(setting: Setting, count: int) -> list[Question]:
        _only_bundled(setting)
        if form == "long":
            return bundled_questions(count, setting.seed)
        return bundled_short_questions(count, setting.index_topk, setting.seed)

    lm_task = WORD_PROBLEMS[form]
    limit = lm_task.max_new_tokens if form == "long" else 0
    return Task(lm_task.name, description, limit, lambda setting: None, draw, lm_task)


def _gsm8k_long(form: str, description: str) -> Task:
    def available(setting: Setting) -> int:
        return len(askable(_need_gsm8k(setting), "test", form))

    def draw(setting: Setting, count: int) -> list[Question]:
        data, tokenizer = _need_gsm8k(setting), setting.tokenizer
        return gsm8k_long_questions(data, tokenizer, setting.context, form, count, setting.seed)

    lm_task = GSM8K_LONG[form]
    return Task(lm_task.name, description, lm_task.max_new_tokens, available, draw, lm_task)


def _few_shot(setting: Setting, count: int) -> list[Question]:
    """As lm-eval writes gsm8k; which examples it draws for a question is its own affair."""
    data = _need_gsm8k(setting)
    rng = Random(f"gsm8k {setting.seed}")
    asked = rng.sample(data.test, min(count, len(data.test)))
    questions = []
    for problem in asked:
        shown = rng.sample(data.train, min(SHOTS, len(data.train)))
        texts = [f"Question: {p.question}\nAnswer: {p.answer}\n\n" for p in shown]
        prompt = f"{''.join(texts)}Question: {problem.question}\nAnswer:"
        questions.append(Question(prompt, problem.answer))
    return questions


TASKS = (
    _word_problems(
        "long",
        "Word problems about a hundred facts, in the bundled model's language, from its test split."
        " Any fact may be needed.",
    ),
    _word_problems(
        "short",
        "The same with a few facts: question, facts and solution fit in index_topk. Every pattern"
        " gives the same answers: it shows what a short test is worth.",
    ),
    Task(
        "gsm8k",
        f"GSM8K as usually run, by lm-eval, after {SHOTS} solved examples.",
        256,
        lambda setting: len(_need_gsm8k(setting).test),
        _few_shot,
        None,
    ),
    _gsm8k_long(
        "examples",
        "GSM8K's test questions after as many solved examples as the context holds.",
    ),
    _gsm8k_long(
        "scattered",
        "GSM8K's test questions, their facts scattered among those of other problems: an answer"
        " has to be looked up all over the context.",
    ),
)
