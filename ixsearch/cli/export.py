"""`ixsearch export`: the settings that switch a pattern on, for each engine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ixsearch.cli.engines import Engines, read_engines
from ixsearch.cli.options import Json
from ixsearch.cli.subject import check, read_model
from ixsearch.patterns import Options, PatternError, Report
from ixsearch.patterns.dialects import (
    ENGINES,
    Dialect,
    EngineSpec,
    find_dialect,
    newest,
    rows_of,
)
from ixsearch.patterns.export import Export, Exported, write_exports

EXAMPLES = """\
\b
Examples:
  ixsearch export pattern.yaml --model /models/GLM-5 --out overrides
  ixsearch export pattern.yaml --engine vllm==0.33.0 --engine sglang==0.5.23 --out overrides
"""


def export(
    pattern: Annotated[
        str, typer.Argument(metavar="FILE|LETTERS", help="Anything that `ixsearch validate` reads.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write into.")],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Checkpoint folder, config.json or preset. A folder's config.json is written with"
            " the pattern in it too, and which layers have indexers is checked.",
        ),
    ] = None,
    engine: Engines = None,
    serve: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What the commands serve. Default: --model, else MODEL."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write settings for vLLM, SGLang and others: a file each, and the command that serves it.

    Every layer is spelled out, never as a frequency, in the keys that this version of the engine
    reads. Without --engine: the newest known version of each, and what one of them cannot run is a
    warning. An engine that --engine names and that cannot run the pattern is an error with its
    mend, and the exit code is 1; the files are written all the same.
    """
    asked = read_engines(engine)
    specs = asked or tuple(EngineSpec(name) for name in ENGINES)
    report = check(pattern, model, Options(asked))
    _refuse_wrong(report)
    exports = _exports(report, specs, bool(asked), serve or (model if _is_path(model) else "MODEL"))
    written = write_exports(out, exports, _whole_config(model))
    report = _as_exported(report, exports, bool(asked))
    if as_json:
        typer.echo(json.dumps(to_json(written, out, report)))
    else:
        typer.echo(to_text(written, out, report))
    if failing := _failing(written, report):
        said = f"error: the files are written, but this does not run in {', '.join(failing)}"
        typer.echo(f"{said}: its findings say the mend", err=True)
        raise typer.Exit(1)


def _refuse_wrong(report: Report) -> None:
    """Nothing is written of a pattern that is wrong in itself, or for an engine not known."""
    wrong = [f for f in report.findings if f.level == "error" and not f.code.startswith("IX4")]
    wrong += [f for f in report.findings if f.code == "IX401"]
    if wrong or report.pattern is None:
        raise PatternError.of(tuple(wrong) or report.findings)


def _exports(
    report: Report, specs: tuple[EngineSpec, ...], asked: bool, model: str
) -> list[Export]:
    assert report.pattern is not None
    config = _known_config(report)
    rows = []
    for spec in specs:
        if not asked:
            rows.append(newest(spec.engine))
        else:
            rows += _all_rows(spec.engine) if spec.version is None else [find_dialect(spec)]
    source = report.reading.source
    exports = [Export(row, report.pattern, config, source, model) for row in dict.fromkeys(rows)]
    return exports if asked else [export for export in exports if export.can_share]


def _all_rows(engine: str) -> list[Dialect]:
    """The rows of an engine in which it can share at all."""
    return [row for row in rows_of(engine) if row.reads]


def _known_config(report: Report) -> dict[str, Any]:
    if report.model is not None:
        return dict(report.model.values)
    file = report.reading.pattern_file
    assert report.pattern is not None
    return file.model.config() if file else {"num_hidden_layers": len(report.pattern)}


def _whole_config(model: str | None) -> dict[str, Any] | None:
    """A config.json to patch; a preset has only some of its keys."""
    return dict(read_model(model).values) if _is_path(model) and model is not None else None


def _is_path(model: str | None) -> bool:
    return model is not None and Path(model).exists()


def _as_exported(report: Report, exports: list[Export], asked: bool) -> Report:
    """The check of what was written: by engine, in the keys of that engine."""
    from ixsearch.patterns import lint, read_anything

    assert report.pattern is not None
    reading = replace(
        read_anything(report.pattern.letters), pattern_file=report.reading.pattern_file
    )
    specs = dict.fromkeys(e.dialect.spec for e in exports) if asked else ()
    return lint(reading, report.model, Options(tuple(specs)))


def _failing(written: list[Exported], report: Report) -> list[str]:
    """The engines that cannot run what was written for them."""
    return [
        part.export.dialect.name
        for part in written
        if not part.export.can_share or any(f.level == "error" for f in _about(part, report))
    ]


def to_text(written: list[Exported], out: Path, report: Report) -> str:
    """What a person reads."""
    lines = []
    for part in written:
        lines += [f"{part.export.dialect.name}: {part.path or _without_file(part)}"]
        lines += [f"  {part.command}"] if part.command else []
        lines += [f"  {f.level} {f.code}: {f.message}\n    {f.mend}" for f in _about(part, report)]
    lines.append(f"keys of all of them: {out / 'hf_overrides.json'}")
    if (out / "config.json").exists():
        lines.append(f"config.json with the pattern: {out / 'config.json'}")
    else:
        lines.append("give --model FOLDER to have a config.json with the pattern too")
    return "\n".join(lines)


def _without_file(part: Exported) -> str:
    if part.command:
        return "needs no file"
    return "takes the pattern from config.json" if part.export.can_share else "cannot"


def to_json(written: list[Exported], out: Path, report: Report) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "ok": not _failing(written, report),
        "out": str(out),
        "pattern": report.letters,
        "engines": [
            {
                "engine": part.export.dialect.engine,
                "versions": part.export.dialect.label,
                "file": str(part.path) if part.path else None,
                "overrides": part.export.overrides,
                "command": part.command or None,
                "inline_command": part.export.command() or None,
                "findings": [f.to_json() for f in _about(part, report)],
            }
            for part in written
        ],
    }


def _about(part: Exported, report: Report):
    name = part.export.dialect.name
    return [f for f in report.findings if name in f.engines]
