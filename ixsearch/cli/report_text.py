"""A check for people: what was read, what will run, what is wrong."""

from __future__ import annotations

from collections.abc import Iterable

from ixsearch.cli.wrapping import one_line, wrapped
from ixsearch.patterns import Finding, Pattern, Report, Resolved
from ixsearch.patterns.counting import counted


def report_text(report: Report, strict: bool = False) -> str:
    """All of it, the verdict last."""
    reading = report.reading
    lines = [f"{reading.source}: {reading.format}"]
    lines += _keys(report)
    lines += _model(report)
    lines += _pattern(report.letters)
    lines += _runs(report)
    for finding in report.findings:
        lines += _finding(finding)
    lines.append(_verdict(report, strict))
    return "\n".join(printable(line) for line in lines)


def printable(line: str) -> str:
    """A line without characters that could move the cursor, or that no terminal can encode."""
    return "".join(c if c.isprintable() else "?" for c in line)


def _keys(report: Report) -> list[str]:
    if report.reading.portable or not report.written:
        return []
    return [f"  sets     {', '.join(report.written)}"]


def _model(report: Report) -> list[str]:
    model = report.model
    if model is None:
        return []
    mtp = f" + {model.num_mtp_layers} MTP" if model.num_mtp_layers else ""
    owners = model.indexer_layers
    if owners is None:
        weights = "weights not seen"
    elif len(owners) == model.num_hidden_layers:
        weights = "an indexer on every layer"
    else:
        weights = f"indexers on {counted(len(owners), 'layer')}"
    layers = f"{counted(model.num_hidden_layers, 'layer')}{mtp}"
    said = f"{model.architecture}, {layers}, {weights}"
    return wrapped(f"  model    {model.source}: ", said, " " * 11)


def _pattern(letters: str) -> list[str]:
    return [f"  pattern  {_clip(letters)}"] if letters else []


def _runs(report: Report) -> list[str]:
    """What runs, each string once, with the engines that run it."""
    engines: dict[str, list[Resolved]] = {}
    for run in report.runs:
        engines.setdefault(run.letters or f"! {run.failure}", []).append(run)
    if not engines:
        return _shape(report.letters)
    lines = []
    for letters, runs in engines.items():
        names = ", ".join(run.dialect.name for run in runs)
        if letters.startswith("! "):
            lines += wrapped("  fails    ", f"{names}: {letters[2:]}", " " * 11)
            continue
        same = " (as written)" if letters == report.letters else ""
        lines += [f"  runs     {_clip(letters)}{same}", *_shape(letters)]
        lines += wrapped("           in ", names, "              ")
    return lines


def _shape(letters: str) -> list[str]:
    if not letters or letters.strip("FS"):
        return []
    full = letters.count("F")
    share = full / len(letters)
    layers = counted(len(letters), "layer")
    count = f"{layers}: {full} F, {len(letters) - full} S, retention {share:.2f}"
    lines = [f"           {count}"]
    if letters.startswith("F") and "S" in letters:
        groups = "  ".join(span(group) for group in Pattern(letters).index_groups())
        lines += wrapped("           groups ", groups, " " * 18)
    return lines


def span(layers: range) -> str:
    """An index group: 4-7, or 4."""
    return f"{layers.start}-{layers.stop - 1}" if len(layers) > 1 else f"{layers.start}"


def _finding(finding: Finding) -> Iterable[str]:
    where = f"{finding.place}: " if finding.place else ""
    yield from one_line(where, f"{finding.level} {finding.code}: {finding.text}", "    ")
    yield from wrapped("    why:  ", finding.rule.why, " " * 10)
    if finding.mend:
        yield from wrapped("    mend: ", finding.mend, " " * 10)


def _verdict(report: Report, strict: bool) -> str:
    errors, warnings = report.count("error"), report.count("warning")
    told = [f"errors: {errors}"] if errors else []
    told += [f"warnings: {warnings}"] if warnings else []
    if not report.ok(strict):
        return f"not valid, {', '.join(told)}"
    unseen = " as a pattern; give --model to check it against a model"
    against = f" for {report.model.source}" if report.model else unseen
    return f"valid{against}{', ' + ', '.join(told) if told else ''}"


def _clip(letters: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in letters[:300])
    return shown + (f"... ({len(letters)} letters)" if len(letters) > 300 else "")
