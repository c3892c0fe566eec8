"""Which finalist to serve, and why, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

from ixsearch.output.figures import match, nats, percent, quartiles, strict, times
from ixsearch.patterns import Pattern
from ixsearch.results import Finalist, Quality
from ixsearch.yardstick import Yardstick

TOLERANCE = 0.05
"""Largest accepted drop of the share of answers that are entirely right: 5 points."""
LOSS_TOLERANCE = 0.01
"""Where answers cannot tell: largest accepted relative increase of the loss, 1 %."""


@dataclass(frozen=True)
class Recommendation:
    """What to serve."""

    pattern: Pattern | None
    """None: no searched pattern is within the tolerance; serve all-F."""
    measure: str
    """What decided: match, loss, or nothing where the documents cannot see a pattern."""
    headline: str
    reason: str


def recommend(
    finalists: Sequence[Finalist],
    tolerance: float = TOLERANCE,
    loss_tolerance: float = LOSS_TOLERANCE,
) -> Recommendation:
    """The searched finalist with the fewest F layers that is within the tolerance of all-F.

    Held-out answers decide. Where none are marked, or all-F itself gets so few right that there
    is little to lose (under four times the tolerance, or under half if that is less), the relative
    increase of the held-out loss decides. A finalist with more F layers is preferred only where it
    was measured to be clearly faster, in prefill and in decode. `finalists` holds all-F, as
    `baseline`.
    """
    baseline = next(f for f in finalists if f.origin == "baseline")
    searched = sorted(
        (f for f in finalists if f.origin == "best" and f.pattern != baseline.pattern),
        key=lambda f: (f.pattern.num_full, -f.held_out.matched, f.held_out.divergence),
    )
    if not searched:
        return _keep("nothing", "No searched pattern went on to held-out documents.")
    if all(f.held_out.divergence == 0 for f in searched):
        return _keep(
            "nothing",
            "The held-out documents cannot tell patterns apart: every pattern scored exactly as"
            " all-F. Give documents longer than index_topk.",
        )
    rule = _yardstick(baseline.held_out, tolerance, loss_tolerance)
    passing = [f for f in searched if rule.passes(f)]
    if not passing:
        return _keep(rule.measure, _why_none(rule, searched))
    chosen = _fastest(passing)
    pattern = chosen.pattern
    return Recommendation(
        pattern,
        rule.measure,
        f"Serve {pattern}: {pattern.num_full} of {len(pattern)} layers F.",
        " ".join(_why(rule, chosen, baseline, searched)),
    )


def _yardstick(baseline: Quality, tolerance: float, loss_tolerance: float) -> Yardstick:
    if baseline.answers and baseline.match_rate >= min(4 * tolerance, 0.5):
        return Yardstick("match", baseline, tolerance)
    return Yardstick("loss", baseline, loss_tolerance)


def _fastest(passing: list[Finalist]) -> Finalist:
    """The first (fewest F), unless another is faster beyond the spread in both phases."""
    chosen = passing[0]
    for other in passing[1:]:
        if other.speed and chosen.speed and _clearly_faster(other, chosen):
            chosen = other
    return chosen


def _clearly_faster(a: Finalist, b: Finalist) -> bool:
    return (
        a.speed.prefill_ratio.low > b.speed.prefill_ratio.high
        and a.speed.decode_ratio.low > b.speed.decode_ratio.high
    )


def _keep(measure: str, reason: str) -> Recommendation:
    return Recommendation(None, measure, "Keep all-F: no searched pattern is recommended.", reason)


def _why_none(rule: Yardstick, searched: list[Finalist]) -> str:
    closest = min(searched, key=lambda f: (rule.drop(f), f.held_out.divergence))
    return (
        f"No searched pattern is within the tolerance of {rule.limit} on held-out documents."
        f" The closest, {closest.pattern} ({closest.pattern.num_full} F), has {rule.words(closest)}"
        f" ({rule.figure(rule.baseline)})."
        " Search a budget with more F layers, or accept a larger tolerance."
    )


def _why(
    rule: Yardstick, chosen: Finalist, baseline: Finalist, searched: list[Finalist]
) -> list[str]:
    quality = chosen.held_out
    of = f"{quality.answers} answers" if rule.measure == "match" else f"{quality.tokens} tokens"
    return [
        f"On {quality.documents} held-out documents ({of}) it has {rule.words(chosen)}"
        f" ({rule.figure(rule.baseline)}), within the tolerance of {rule.limit};"
        f" its divergence from all-F is {nats(quality.divergence, quality.divergence_stderr)}"
        " nats a token.",
        *_fallback_words(rule),
        *_decoding_words(rule, chosen, baseline),
        *_speed_words(chosen, baseline),
        *_caution_words(rule, chosen, searched),
        _next_words(rule, chosen, searched),
    ]


def _fallback_words(rule: Yardstick) -> list[str]:
    if rule.measure == "match":
        return []
    if not rule.baseline.answers:
        return ["The documents mark no answers, so the loss decided."]
    return [f"All-F has only {match(rule.baseline)} % of the answers right, so the loss decided."]


def _decoding_words(rule: Yardstick, chosen: Finalist, baseline: Finalist) -> list[str]:
    if not (chosen.task and baseline.task):
        return []
    words = (
        f"Decoding {chosen.task.questions} problems of {chosen.task.task} it scores"
        f" {strict(chosen.task)} % (strict match), all-F {strict(baseline.task)} %"
    )
    lost = baseline.task.strict - chosen.task.strict
    limit = rule.tolerance if rule.measure == "match" else TOLERANCE
    if lost > limit + 1e-12:
        words += f": {100 * lost:.1f} points below, MORE than the tolerance, so check this first"
    return [words + "."]


def _speed_words(chosen: Finalist, baseline: Finalist) -> list[str]:
    if not chosen.speed:
        return []
    speed = chosen.speed
    words = [
        f"Measured against all-F: prefill {times(speed.prefill_ratio)}"
        f" ({quartiles(speed.prefill_ratio)}), decode {times(speed.decode_ratio)}"
        f" ({quartiles(speed.decode_ratio)}), medians and quartiles of {speed.rounds} rounds."
    ]
    if not (
        speed.prefill_ratio.low > _noise(baseline, "prefill_ratio")
        or speed.decode_ratio.low > _noise(baseline, "decode_ratio")
    ):
        words.append("On this workload that is no measurable speed-up; longer contexts gain more.")
    return words


def _noise(baseline: Finalist, ratio: str) -> float:
    """How fast all-F may seem against itself."""
    return max(1.0, getattr(baseline.speed, ratio).high) if baseline.speed else 1.0


def _caution_words(rule: Yardstick, chosen: Finalist, searched: list[Finalist]) -> list[str]:
    words = ["This is a point estimate, not yet a proof."]
    if rule.measure == "match":
        error = hypot(chosen.held_out.match_stderr, rule.baseline.match_stderr)
        words[0] = (
            "This is a point estimate, not yet a proof: were the answers independent, the"
            f" difference would have a standard error of {percent(error)} points."
        )
    size = chosen.pattern.num_full
    largest = max((f.pattern.num_full for f in searched if not rule.passes(f)), default=0)
    if largest > size:
        words.append(f"A pattern with {largest} F missed the tolerance: expect noise.")
    if any(rule.passes(f) for f in searched if f.pattern.num_full < size):
        words.append("A smaller budget is within the tolerance too, but was measured slower.")
    return words


def _next_words(rule: Yardstick, chosen: Finalist, searched: list[Finalist]) -> str:
    smaller = [f for f in searched if f.pattern.num_full < chosen.pattern.num_full]
    if not smaller:
        return "No smaller budget was searched."
    following = max(smaller, key=lambda f: (f.pattern.num_full, -rule.drop(f)))
    return (
        f"The next smaller budget, {following.pattern.num_full} F ({following.pattern}),"
        f" has {rule.words(following)}."
    )
