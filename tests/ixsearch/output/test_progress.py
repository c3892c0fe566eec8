import io

import pytest
from rich.console import Console

from ixsearch.output.progress import RunProgress
from ixsearch.patterns import IxsearchError

PHASES = {"search": 90.0, "speed": 30.0}


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80)


def test_on_a_terminal_bars_show_phase_note_and_share():
    console = terminal()
    with RunProgress(PHASES, console=console) as progress:
        report = progress.phase("search")
        report(0.5, "31 patterns [red]")
        (total, bar) = progress._bars.tasks
        assert bar.completed == 0.5 and total.completed == 45 and total.total == 120
        report(0.2)
        assert bar.completed == 0.5, "never backwards"
        progress._bars.refresh()
        progress.phase("speed")
        assert total.completed == 90, "a phase that ends is whole"
    assert total.completed == 120
    text = console.file.getvalue()
    assert "31 patterns [red]" in text and "search" in text
    assert text.rstrip("\n").endswith("\x1b[?25h"), "the cursor is back"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupt_passes_through_and_gives_the_cursor_back(error):
    console = terminal()
    with pytest.raises(error), RunProgress(PHASES, console=console) as progress:
        progress.phase("search")(0.3)
        raise error
    assert console.file.getvalue().rstrip("\n").endswith("\x1b[?25h")
    assert progress._bars.tasks[1].completed == 0.3, "not shown as done"


@pytest.mark.parametrize("console", [Console(file=io.StringIO()), terminal()])
def test_elsewhere_one_line_a_phase(console):
    with RunProgress(PHASES, bars=False, console=console) as progress:
        progress.phase("search")(0.5, "note")
        progress.phase("speed")
        progress.phase("search")
    lines = console.file.getvalue().splitlines()
    assert [line.split(":")[0] for line in lines] == ["search", "speed", "search"]
    assert "\x1b" not in console.file.getvalue()


@pytest.fixture
def logged(monkeypatch):
    """The lines of a phase with these reports, each (second, share, note)."""

    def logged(*reports):
        times = iter([0.0, *(second for second, _, _ in reports), reports[-1][0]])
        monkeypatch.setattr("ixsearch.output.progress.time.monotonic", lambda: next(times))
        console = Console(file=io.StringIO(), width=20)
        with RunProgress(PHASES, console=console) as progress:
            report = progress.phase("search")
            for _, share, note in reports:
                report(share, note)
        return console.file.getvalue().splitlines()

    return logged


def test_a_long_phase_has_lines_of_its_own_where_there_is_no_bar(logged):
    lines = logged(
        (4, 0.01, "effects, 2 patterns"),  # too soon
        (6, 0.02, "effects, 2 patterns"),
        (12, 0.03, "effects, 2 patterns"),
        (14, 0.04, "guided, 3 patterns"),  # another step
        (18, 0.3, "guided, 9 patterns"),  # too soon again
        (20, 0.3, "guided, 12 patterns"),  # much more is done
        (40, 0.31, "guided, 13 patterns"),
        (51, 0.32, "guided, 14 patterns  10F 4.5e-06"),  # half a minute
        (60, 0.33, "guided, 15 patterns"),
    )
    assert lines == [
        "search 2 %, 6 s: effects, 2 patterns",
        "search 4 %, 14 s: guided, 3 patterns",
        "search 30 %, 20 s: guided, 12 patterns",
        "search 32 %, 51 s: guided, 14 patterns  10F 4.5e-06",
        "search: 60.0 s",
    ]


def test_a_phase_without_notes_says_how_far_it_is(logged):
    reports = [(second, second / 100, "") for second in range(1, 101)]
    shares = [line for line in logged(*reports) if "%" in line]
    assert shares[0] == "search 5 %, 5 s" and 15 <= len(shares) <= 20


@pytest.mark.parametrize(
    ("error", "said"), [(KeyboardInterrupt(), "interrupted"), (IxsearchError("x"), "failed")]
)
def test_a_phase_that_does_not_end_says_why(error, said):
    console = Console(file=io.StringIO())
    with pytest.raises(type(error)), RunProgress(PHASES, console=console) as progress:
        progress.phase("search")
        raise error
    assert console.file.getvalue().rstrip().endswith(f" s, {said}")


def test_seconds_by_phase(monkeypatch):
    clock = iter([0, 10, 10, 14, 14, 15])
    monkeypatch.setattr("ixsearch.output.progress.time.monotonic", lambda: next(clock))
    with RunProgress(PHASES, console=Console(file=io.StringIO())) as progress:
        for name in ("search", "speed", "search"):
            report = progress.phase(name)
    assert progress.seconds == {"search": 11, "speed": 4}
    report(0.5)  # late reports are ignored
