"""What the main job finds out about patterns. Search fills these values, output prints them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from ixsearch.mix import ONE_SET, Mix
from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import DocumentScore
from ixsearch.verdict.verdict import Verdict


@dataclass(frozen=True)
class Quality:
    """One pattern on one set of documents, against all-F on the same documents."""

    documents: int
    tokens: int
    """Scored tokens, all past `index_topk`."""
    divergence: float
    """Mean KL(all-F || pattern) a scored token, nats."""
    divergence_stderr: float
    """Standard error of that mean, from the documents' means."""
    loss: float
    """Mean negative log-likelihood a scored token, nats."""
    answers: int
    matched: int
    """Answers whose every token is the argmax."""

    @classmethod
    def of(cls, scores: Sequence[DocumentScore], mix: Mix = ONE_SET) -> Quality:
        """Of the documents of a mix, by whose weights divergence and loss are means."""
        counts = [s.tokens for s in scores]
        tokens = sum(counts)
        sums = [s.divergence_sum for s in scores]
        divergence = mix.mean(sums, counts)
        return cls(
            documents=len(scores),
            tokens=tokens,
            divergence=divergence,
            divergence_stderr=mix.mean_error(sums, counts),
            loss=mix.mean([s.loss_sum for s in scores], counts),
            answers=sum(len(s.matches) for s in scores),
            matched=sum(sum(s.matches) for s in scores),
        )

    @property
    def match_rate(self) -> float:
        return self.matched / self.answers if self.answers else float("nan")

    @property
    def match_stderr(self) -> float:
        return binomial_stderr(self.matched, self.answers)


@dataclass(frozen=True)
class TaskScore:
    """lm-eval's figures for one pattern on one task."""

    task: str
    questions: int
    strict: float
    """Share of right answers by `metric`, with the strict-match filter where there is one."""
    strict_stderr: float
    flexible: float
    """The same with the flexible-extract filter."""
    flexible_stderr: float
    share_past_topk: float
    """Share of generated positions past `index_topk`: at 0 the task cannot see a pattern."""
    correct: tuple[bool, ...] = ()
    """Strict match, question by question, in one order for every pattern, so that they pair."""
    digest: str = ""
    """Hash of the prompts and targets, hex: two scores can be paired when it is the same."""
    metric: str = "exact_match"
    """lm-eval's name of what calls an answer right."""


@dataclass(frozen=True)
class Ratio:
    """Speed-up over all-F in the same rounds: median and quartiles. Above 1 is faster."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Speed:
    """One pattern's measured speed, interleaved with all-F."""

    prefill_tokens_per_s: float
    time_per_output_token_ms: float
    prefill_ratio: Ratio
    decode_ratio: Ratio
    rounds: int


@dataclass(frozen=True)
class Finalist:
    """A pattern that went on to held-out documents."""

    pattern: Pattern
    origin: str
    """baseline, best or uniform."""
    calibration: Quality
    held_out: Quality
    task: TaskScore | None = None
    speed: Speed | None = None
    verdict: Verdict | None = None
    """Of all but the baseline."""
    by_set: tuple[Quality, ...] = ()
    """`held_out`, set by set, where there are several."""


@dataclass(frozen=True)
class DocumentSet:
    """Which documents a figure was measured on."""

    role: str
    """calibration, held-out or test."""
    source: str
    documents: int
    tokens: int
    scored_tokens: int
    """Tokens that are scored: answer tokens (else all) past `index_topk`."""
    candidate_tokens: int
    """Tokens that would be scored were `index_topk` 0."""
    digest: str
    weight: float | None = None
    """Its share of the objective, where there are several sets."""

    @property
    def source_shown(self) -> str:
        """With its weight, where it has one."""
        return self.source if self.weight is None else f"{self.source} (weight {self.weight:.3g})"

    @property
    def share_past_topk(self) -> float:
        return self.scored_tokens / self.candidate_tokens if self.candidate_tokens else 0.0


@dataclass(frozen=True)
class IndexOverlap:
    """How alike the selections of layers are, in all-F."""

    shares: tuple[tuple[float, ...], ...]
    """[layer][layer]: mean share of the indices of one that the other has too."""
    documents: int
    tokens: int
    """Past `index_topk`, over which the mean is."""


@dataclass(frozen=True)
class TrialRow:
    """One pattern of the study."""

    number: int
    pattern: Pattern
    proposer: str
    divergence: float
    divergence_stderr: float
    loss: float
    finished: str
    """ISO date and time."""
    documents: int = 0
    """That the figures are of."""
    complete: bool = True
    """Are these all documents? Else the pattern was dropped on the way."""
    objective: float | None = None
    """Loss, or the share of wrong answers, above all-F's, where the search minimised that."""
    numbers: tuple[int, ...] = ()
    """Of those documents, ascending."""

    @property
    def value(self) -> float:
        """What the search minimised."""
        return self.divergence if self.objective is None else self.objective


def binomial_stderr(hits: int, total: int) -> float:
    """Standard error of a share, sqrt(p (1 - p) / n)."""
    if not total:
        return float("nan")
    p = hits / total
    return sqrt(p * (1 - p) / total)
