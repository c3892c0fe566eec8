"""Reports of `ixsearch validate`, and what must be so for each."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ixsearch.cli.report_json import report_json
from ixsearch.cli.report_text import report_text
from ixsearch.cli.subject import check
from ixsearch.patterns import RULES, Options, Report

LONGEST_MESSAGE = 20_000


def holds(report: Report) -> None:
    """What is so for every report."""
    for finding in report.findings:
        assert finding.code in RULES
        assert len(str(finding)) < LONGEST_MESSAGE, finding.code
        if finding.place and finding.place.line:
            within_its_file(finding.place.file, finding.place.line, finding.place.column)
    assert report.ok() == (not any(f.level == "error" for f in report.findings))
    assert report.ok() or not report.ok(strict=True)
    if report.ok():
        assert report.pattern is not None or any(f.level != "error" for f in report.findings)
    right_lengths(report)
    for strict in (False, True):
        is_printable(report_text(report, strict))
        said = json.dumps(report_json(report, strict))
        assert json.loads(said)["ok"] is report.ok(strict)


def right_lengths(report: Report) -> None:
    """What runs has a letter for each layer of the model."""
    file = report.reading.pattern_file
    if report.model:
        layers = report.model.num_hidden_layers
    elif file:
        layers = file.model.num_hidden_layers
    elif report.reading.portable or report.ok():
        layers = len(report.letters)
    else:
        return
    for run in report.runs:
        assert len(run.letters) == (0 if run.failure else layers), run


LINE = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


def within_its_file(file: str, line: int, column: int) -> None:
    """By the lines of YAML or by those of everybody else; one line more where the file ends."""
    data = Path(file.removesuffix(" (header)")).read_bytes()
    text = data[8 * file.endswith(" (header)") :].decode(errors="replace").removeprefix("\ufeff")
    kinds = ([*text.split("\n"), ""], [*LINE.split(text), ""])
    ends = [len(lines[line - 1]) + 1 for lines in kinds if line <= len(lines)]
    assert any(1 <= column <= end for end in ends), (line, column, text)


def is_printable(text: str) -> None:
    odd = [c for c in text if not c.isprintable() and c != "\n"]
    assert not odd, odd


def codes_of(
    argument: str | Path, model: str | None = None, options: Options | None = None
) -> set[str]:
    report = check(str(argument), model, options or Options())
    holds(report)
    return {finding.code for finding in report.findings}
