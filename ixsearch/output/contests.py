"""Were the calibration documents enough? For the report and the terminal."""

from __future__ import annotations

from math import isfinite

from ixsearch.output import figures as fig
from ixsearch.output.markdown import table
from ixsearch.output.outcome import Outcome
from ixsearch.search.contest import Contest


def contests_section(outcome: Outcome) -> list[str]:
    """A row a budget: the best pattern beside the second."""
    if not outcome.contests:
        return []
    rows = table(
        "F | best, above all-F | second, above the best | 95 % interval | told apart"
        " | documents for that | scored tokens",
        (
            (
                c.best.num_full,
                fig.objective(outcome.objective, c.value),
                fig.objective(outcome.objective, c.difference, c.stderr),
                _interval(outcome.objective, c),
                "yes" if c.told_apart else "no",
                fig.number(c.documents_needed),
                fig.number(c.tokens_needed),
            )
            for c in outcome.contests
        ),
    )
    first = outcome.contests[0]
    text = (
        f"In what the search minimised ({outcome.objective}), on its {first.documents} documents"
        f" with {first.scored_tokens} scored tokens: the differences of the two patterns, document"
        " by document. The interval is of Student's t. Documents for that: about so many of this"
        " kind tell the two apart with a chance of 80 %, if they differ as measured; where the"
        " interval holds 0, that is a rough guess. Patterns that were dropped in a race are not in"
        " this: they had been told from the leader before."
    )
    return ["## Were the documents enough?", "", *rows, "", text]


def contests_line(outcome: Outcome) -> str:
    """The same in one line; empty where no budget has two patterns."""
    told = [str(c.best.num_full) for c in outcome.contests if c.told_apart]
    words = [f"told from the second at {', '.join(told)} F"] if told else []
    words += [_not_told(c) for c in outcome.contests if not c.told_apart]
    if not words:
        return ""
    documents = outcome.contests[0].documents
    return f"On {documents} calibration documents the best pattern is " + "; ".join(words) + "."


def _not_told(found: Contest) -> str:
    words = f"not told from the second at {found.best.num_full} F"
    if found.documents_needed is None:
        return words
    return f"{words} (about {found.documents_needed} documents would)"


def _interval(objective: str, found: Contest) -> str:
    if not isfinite(found.low):
        return fig.DASH
    return f"{fig.objective(objective, found.low)} to {fig.objective(objective, found.high)}"
