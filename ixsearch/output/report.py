"""report.md: what was found, and on what it was measured."""

from __future__ import annotations

from ixsearch.output import figures as fig
from ixsearch.output.contests import contests_section
from ixsearch.output.index_overlap import overlap_section
from ixsearch.output.markdown import cell, line, table
from ixsearch.output.outcome import Outcome
from ixsearch.output.provenance import files, measured_on, search
from ixsearch.results import Finalist, TrialRow
from ixsearch.verdict.comparison import Comparison
from ixsearch.verdict.words import range_of_loss


def report(outcome: Outcome, picture: str | None, note: str = "") -> str:
    """The report as Markdown.

    `picture` is the file name of the drawn front; where it is None, `note` says why.
    """
    sections = [
        [f"# IndexCache pattern for {cell(outcome.model.name)}"],
        _warnings(outcome),
        _recommendation(outcome),
        _finalists(outcome),
        _verdicts(outcome),
        _speed(outcome),
        _front(outcome, picture, note),
        contests_section(outcome),
        overlap_section(outcome),
        measured_on(outcome),
        search(outcome),
        files(outcome),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _warnings(outcome: Outcome) -> list[str]:
    return "\n>\n".join(f"> **WARNING: {line(text)}**" for text in outcome.warnings).splitlines()


def _recommendation(outcome: Outcome) -> list[str]:
    found = outcome.recommendation
    return ["## Recommendation", "", f"**{found.headline}**", "", found.reason]


def _finalists(outcome: Outcome) -> list[str]:
    rows = table(
        "pattern | F | divergence | loss | answers right % | decoded strict % | flexible %",
        (
            (
                _name(f, outcome),
                f.pattern.num_full,
                fig.nats(f.held_out.divergence, f.held_out.divergence_stderr),
                fig.nats(f.held_out.loss),
                fig.match(f.held_out),
                fig.strict(f.task),
                fig.flexible(f.task),
            )
            for f in outcome.finalists
        ),
    )
    letters = table(
        f"pattern | F | letters | divergence in the search{_also(outcome)}",
        (
            (
                _name(f, outcome),
                f.pattern.num_full,
                f"`{f.pattern}`",
                fig.nats(f.calibration.divergence, f.calibration.divergence_stderr),
                *_value(f, outcome),
            )
            for f in outcome.finalists
        ),
    )
    return [
        "## Finalists, on held-out documents",
        "",
        *rows,
        "",
        *_legend(outcome),
        "",
        *_by_set(outcome),
        *letters,
    ]


def _also(outcome: Outcome) -> str:
    """The column of what was minimised, if it is not divergence."""
    return "" if outcome.objective == "divergence" else f" | {_minimised(outcome)}"


def _minimised(outcome: Outcome) -> str:
    names = {"loss": "loss above all-F's", "accuracy": "answers lost", "divergence": "divergence"}
    return f"{names[outcome.objective]} in the search"


def _value(finalist: Finalist, outcome: Outcome) -> list[str]:
    if outcome.objective == "divergence":
        return []
    return [fig.objective(outcome.objective, outcome.value_of(finalist.pattern))]


def _by_set(outcome: Outcome) -> list[str]:
    """Divergence on each held-out set by itself, where there are several."""
    sets = [s for s in outcome.document_sets if s.role == "held-out"]
    if len(sets) < 2:
        return []
    rows = table(
        f"divergence | F | {' | '.join(cell(s.source_shown) for s in sets)}",
        (
            (
                _name(f, outcome),
                f.pattern.num_full,
                *(fig.nats(q.divergence, q.divergence_stderr) for q in f.by_set),
            )
            for f in outcome.finalists
        ),
    )
    return [*rows, ""]


def _verdicts(outcome: Outcome) -> list[str]:
    judged = [f for f in outcome.finalists if f.verdict]
    if not judged:
        return []
    rows = table(
        "pattern | F | verdict | lost | gained | of questions | net loss, points"
        " | divergence, 95 % interval",
        (
            (
                _name(f, outcome),
                f.pattern.num_full,
                f.verdict.finding,
                f.verdict.comparison.losses,
                f.verdict.comparison.gains,
                f.verdict.comparison.questions,
                _range(f.verdict.comparison),
                fig.interval(f.verdict.comparison.divergence),
            )
            for f in judged
        ),
    )
    text = (
        "Questions that only all-F, or only the pattern, has right. The range of the net loss is a"
        " 90 % interval: each end holds with 95 % confidence. Only the patterns that calibration"
        " chose are put to the test, on more documents than the others."
    )
    return ["## Verdicts", "", *rows, "", text]


def _range(found: Comparison) -> str:
    return range_of_loss(found) if found.questions else fig.DASH


def _legend(outcome: Outcome) -> list[str]:
    held_out = outcome.baseline.held_out
    lines = [
        "± is one standard error. Divergence: KL(all-F ‖ pattern); loss: nats; both a token,"
        f" over {held_out.tokens} tokens past index_topk of {held_out.documents} documents."
        f" Answers right: every token of an answer the argmax, of {held_out.answers} answers."
    ]
    tasks = {f.task.task: f.task for f in outcome.finalists if f.task}
    lines += [
        f"Decoded: greedy text for {t.questions} problems of {line(t.task)}, a task of its own and"
        " not the documents above, exact match;"
        f" {fig.percent(t.share_past_topk)} % of the generated positions lie past index_topk."
        for t in tasks.values()
    ]
    return lines


def _speed(outcome: Outcome) -> list[str]:
    measured = [f for f in outcome.finalists if f.speed]
    if not measured or not outcome.workload:
        return []
    load = outcome.workload
    rows = table(
        "pattern | F | prefill tokens/s | prefill ratio | ms an output token | decode ratio",
        (
            (
                _name(f, outcome),
                f.pattern.num_full,
                f"{f.speed.prefill_tokens_per_s:.0f}",
                f"{fig.times(f.speed.prefill_ratio)} ({fig.quartiles(f.speed.prefill_ratio)})",
                f"{f.speed.time_per_output_token_ms:.3f}",
                f"{fig.times(f.speed.decode_ratio)} ({fig.quartiles(f.speed.decode_ratio)})",
            )
            for f in measured
        ),
    )
    text = (
        f"{load.batch} requests of {load.context} tokens, then {load.new_tokens} decode steps"
        f" (seed {load.seed}), on {line(outcome.model.device)}, {measured[0].speed.rounds} rounds"
        " interleaved with all-F in one process. Ratio: all-F's time over the pattern's, of the"
        " same round; median (quartiles); above 1 is faster. All-F against itself is the noise."
    )
    return ["## Speed", "", *rows, "", text]


def _front(outcome: Outcome, picture: str | None, note: str) -> list[str]:
    found = outcome.front
    rows = table(
        f"F | {_minimised(outcome)} | pattern",
        (
            (
                t.pattern.num_full,
                _on_front(t, outcome),
                f"`{t.pattern}`",
            )
            for t in found
        ),
    )
    image = f"![What was minimised against F layers]({picture})" if picture else note
    title = "## The front" if outcome.nested is None else "## The nested front"
    return [title, "", image, "", *rows]


def _on_front(trial: TrialRow, outcome: Outcome) -> str:
    if outcome.objective == "divergence":
        return fig.nats(trial.divergence, trial.divergence_stderr)
    return fig.objective(outcome.objective, trial.value)


def _name(finalist: Finalist, outcome: Outcome) -> str:
    name = "all-F" if finalist.origin == "baseline" else finalist.origin
    return f"**{name}, recommended**" if finalist is outcome.served else name
