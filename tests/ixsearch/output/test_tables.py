import io
from dataclasses import replace

import pytest
from rich.console import Console

from ixsearch.output.report import report
from ixsearch.output.tables import print_outcome
from ixsearch.patterns import Pattern


def shown(outcome, width: int = 80, **console) -> str:
    out = io.StringIO()
    print_outcome(Console(file=out, width=width, **console), outcome, "/tmp/out")
    return out.getvalue()


def widest(text: str) -> int:
    """Of all lines but commands, which are whole, to be copied."""
    return max(len(s) for s in text.splitlines() if not s.startswith(("  vllm ", "  python ")))


def test_fits_80_columns_with_every_figure_whole(outcome):
    text = shown(replace(outcome, warnings=("gsm8k cannot see a pattern",)))
    assert widest(text) <= 80
    assert "…" not in text
    for figure in (
        "4.00e-04 ±4e-05",
        "0.0121 ±0.0013",
        "95.2 ±1.1",
        "94.6 ±3.5",
        "1.13x",
        "1.12-1.15",
        "1.03-1.06",
        "gsm8k cannot see a pattern",
        "index_topk 48",
        "drop-16 on cpu",
        "/tmp/out",
    ):
        assert figure in text


def test_what_is_decoded_is_said_to_be_a_task_of_its_own(outcome):
    told = "56 questions of gsm_worlds, exact_match: a task of its own, not these documents"
    assert told in " ".join(shown(outcome).split())
    assert "gsm_worlds, a task of its own and not the documents above" in report(outcome, None)


def test_the_recommended_row_is_marked(outcome, none_recommended):
    assert [line.split()[:3] for line in shown(outcome).splitlines() if line[:1] == ">"] == [
        [">", "best", "8"]
    ]
    text = shown(none_recommended)
    assert [line.split()[:3] for line in text.splitlines() if line[:1] == ">"] == [
        [">", "all-F", "16"]
    ]
    assert "Keep all-F" in text


def test_no_colours_where_it_is_not_a_terminal(outcome):
    assert "\x1b" not in shown(outcome)
    assert "\x1b" in shown(outcome, force_terminal=True)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_long_patterns_and_other_widths_do_not_lose_letters(outcome, width):
    long = Pattern("FSSS" * 23)
    found = replace(outcome.recommendation, headline=f"Serve {long}")
    text = shown(replace(outcome, recommendation=found), width)
    assert widest(text) <= width
    assert long.letters in "".join(c for c in text if c in "FS")


def test_markup_in_names_is_text(outcome):
    odd = replace(outcome, warnings=("[bold]loud[/bold] [/x]",))
    assert "[bold]loud[/bold] [/x]" in shown(odd)
