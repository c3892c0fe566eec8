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
