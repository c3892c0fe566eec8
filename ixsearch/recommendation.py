"""Which finalist to serve, and why, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixsearch.keeping import Searched, why_no_finalist, why_none
from ixsearch.output.figures import nats, quartiles, strict, times
from ixsearch.patterns import Pattern
from ixsearch.results import Finalist
from ixsearch.verdict.finding import Finding
from ixsearch.verdict.measure import Measure
from ixsearch.verdict.verdict import Judgement


@dataclass(frozen=True)
class Recommendation:
    """What to serve."""

    pattern: Pattern | None
    """None: no searched pattern was shown to be within the tolerance; keep all-F if allowed."""
    measure: str
    """What decided: accuracy, loss, or nothing where the documents cannot see a pattern."""
    headline: str
    reason: str


ANY = Searched()


def recommend(
    finalists: Sequence[Finalist], judgement: Judgement, how: Searched = ANY
) -> Recommendation:
    """Put the judgement on the searched finalists into words.

    `finalists` holds all-F, as `baseline`; the others carry the judgement's verdicts.
    """
    searched = [f for f in finalists if f.verdict is not None and f.origin != "uniform"]
    if not searched:
        return _keep("nothing", why_no_finalist(how), how)
    if all(f.held_out.divergence == 0 for f in searched):
        return _keep(
            "nothing",
            "The held-out documents cannot tell patterns apart: every pattern scored exactly as"
            " all-F. Give documents longer than index_topk.",
            how,
        )
    if judgement.chosen is None:
        return _keep(judgement.measure, why_none(searched, judgement.measure, how), how)
    chosen = next(f for f in searched if f.verdict == judgement.chosen)
    pattern = chosen.pattern
    baseline = next(f for f in finalists if f.origin == "baseline")
    return Recommendation(
        pattern,
        judgement.measure,
        f"Serve {pattern}: {pattern.num_full} of {len(pattern)} layers F.",
        " ".join(_why(chosen, baseline, searched)),
    )


def _keep(measure: str, reason: str, how: Searched) -> Recommendation:
    headline = "Keep all-F: no searched pattern is recommended."
    if not how.allows_all_full:
        headline = "No pattern is recommended, and all-F is not what --pin-shared asks for."
    return Recommendation(None, measure, headline, reason)


def _why(chosen: Finalist, baseline: Finalist, searched: Sequence[Finalist]) -> list[str]:
    quality = chosen.held_out
    return [
        chosen.verdict.sentence,
        f"Its divergence from all-F is {nats(quality.divergence, quality.divergence_stderr)} nats"
        f" a token on {quality.documents} held-out documents.",
        *_fallback_words(chosen, baseline),
        *_decoding_words(chosen, baseline),
        *_speed_words(chosen, baseline),
        *_smaller_words(chosen, searched),
    ]


def _fallback_words(chosen: Finalist, baseline: Finalist) -> list[str]:
    if chosen.verdict.measure is Measure.ACCURACY:
        return []
    if not baseline.held_out.answers:
        return ["The documents mark no answers, so the loss decided."]
    return ["All-F has too few of the answers right to lose any, so the loss decided."]


def _decoding_words(chosen: Finalist, baseline: Finalist) -> list[str]:
    if not (chosen.task and baseline.task):
        return []
    words = (
        f"Decoding {chosen.task.questions} problems of {chosen.task.task} it scores"
        f" {strict(chosen.task)} % (strict match), all-F {strict(baseline.task)} %"
    )
    lost = baseline.task.strict - chosen.task.strict
    if lost > 2 * max(chosen.task.strict_stderr, chosen.verdict.tolerance):
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


def _smaller_words(chosen: Finalist, searched: Sequence[Finalist]) -> list[str]:
    smaller = [f for f in searched if f.pattern.num_full < chosen.pattern.num_full]
    if not smaller:
        return ["No smaller budget was searched."]
    following = max(smaller, key=lambda f: f.pattern.num_full)
    words = [
        f"The next smaller budget, {following.pattern.num_full} F ({following.pattern}):"
        f" {following.verdict.sentence}"
    ]
    if any(f.verdict.finding is Finding.WITHIN for f in smaller):
        words.append("A smaller budget is within the tolerance too, but was measured slower.")
    return words
