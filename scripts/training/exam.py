"""Problems the model has not seen, and how well it solves them under a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch

from ixsearch.tasks.worlds import DOCUMENT_TOKENS, draw_document
from training.lessons import CONTEXT, SOLUTION, fill
from training.measures import token_losses
from training.model import DsaModel
from training.mtp import DraftLayer


@dataclass(frozen=True)
class Exam:
    """Documents of one length. `problem`: the number of a solution token's problem, else -1."""

    tokens: torch.Tensor
    problem: torch.Tensor
    count: int

    @classmethod
    def draw(
        cls, split: str, documents: int, device: torch.device, tokens: int = DOCUMENT_TOKENS
    ) -> Exam:
        """The first documents of a split; their seeds are those of no lesson."""
        ids, problems, count = [], [], 0
        for number in range(documents):
            document = draw_document(Random(f"{split} 0 {number}"), tokens)
            segments = [(t, SOLUTION if s else CONTEXT) for t, s in document.segments()]
            row, kinds = fill(segments, tokens)
            ids.append(row)
            problems.append(_number_runs(kinds, count))
            count += len(document.problems)
        return cls(torch.tensor(ids, device=device), torch.tensor(problems, device=device), count)


def _number_runs(kinds: list[int], first: int) -> list[int]:
    """Numbers from `first` for the runs of solution tokens, -1 for all others."""
    numbers, current = [], first - 1
    for before, kind in zip([CONTEXT, *kinds], kinds, strict=False):
        current += kind == SOLUTION != before
        numbers.append(current if kind == SOLUTION else -1)
    return numbers


@dataclass(frozen=True)
class Grade:
    """What came out of an exam."""

    accuracy: float
    """Share of the solutions each of whose tokens is the argmax, as greedy decoding writes it."""
    loss: float
    """Mean negative log-likelihood of a solution token, nats."""
    tokens: float
    """Share of the solution tokens that are the argmax."""


@torch.no_grad()
def grade(
    model: DsaModel,
    exam: Exam,
    pattern: Sequence[bool] | None = None,
    dense: bool = False,
    batch: int = 32,
) -> Grade:
    """Sit the exam: under a pattern (is a layer F?), all F by default, or with dense attention."""
    loss = hits = total = 0
    wrong = torch.zeros(exam.count, device=exam.tokens.device)
    for tokens, problem in zip(exam.tokens.split(batch), exam.problem.split(batch), strict=True):
        run = model.begin(tokens)
        hidden = model.dense(tokens, run) if dense else model.sparse(tokens, run, pattern)
        logits = model.logits(hidden)
        asked = problem[:, 1:] >= 0
        hit = logits[:, :-1].argmax(-1) == tokens[:, 1:]
        loss += token_losses(logits, tokens)[asked].sum()
        hits += (hit & asked).sum()
        total += asked.sum()
        wrong.index_add_(0, problem[:, 1:][asked], (~hit[asked]).float())
    return Grade(
        accuracy=float((wrong == 0).float().mean()),
        loss=float(loss / total),
        tokens=float(hits / total),
    )


@torch.no_grad()
def acceptance(model: DsaModel, draft: DraftLayer, exam: Exam, batch: int = 32) -> dict[str, float]:
    """Share of the MTP layer's greedy drafts that are the model's own next token.

    At position p the draft is of token p + 2, given the document up to p + 1; the model's next
    token is its argmax at p + 1.
    """
    same = {"solution": 0.0, "all": 0.0}
    total = dict(same)
    for tokens, problem in zip(exam.tokens.split(batch), exam.problem.split(batch), strict=True):
        run = model.begin(tokens)
        hidden = model.sparse(tokens, run)
        own = model.logits(hidden).argmax(-1)[:, 1:-1]
        drafts = draft(model, tokens, hidden, run).argmax(-1)[:, :-2]
        places = {"solution": problem[:, 2:] >= 0, "all": tokens[:, 2:] > 0}
        for name, place in places.items():
            same[name] += float(((own == drafts) & place).sum())
            total[name] += float(place.sum())
    return {name: same[name] / total[name] for name in same}
