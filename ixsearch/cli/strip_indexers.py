"""`ixsearch strip-indexers`: a copy of a checkpoint that vLLM can load with a pattern."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ixsearch.cli.interruption import when_interrupted
from ixsearch.cli.options import Json
from ixsearch.cli.subject import sound_pattern
from ixsearch.patterns.counting import counted

if TYPE_CHECKING:
    from ixsearch.runtime.strip_indexers import Stripped

EXAMPLES = """\
\b
Examples:
  ixsearch strip-indexers ./my-model out/pattern.yaml ./my-model-stripped
  ixsearch strip-indexers ./my-model FFSSSFSSSFSSSFSS ./my-model-stripped --json
"""


def strip_indexers(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of the checkpoint.")],
    pattern: Annotated[
        str,
        typer.Argument(metavar="PATTERN", help="A pattern.yaml, or the letters: FSSF..."),
    ],
    destination: Annotated[
        Path,
        typer.Argument(metavar="DST", help="Folder to make; on MODEL's disk it takes least room."),
    ],
    as_json: Json = False,
) -> None:
    """Copy a checkpoint without the indexer weights of the layers that the pattern marks S.

    Some versions of vLLM cannot load a checkpoint that has them (KeyError). The copy's config.json
    asks for the pattern. Files that do not change are hard links where that is possible: edited in
    place, they change in MODEL too. DST is complete or absent.
    """
    with when_interrupted("interrupted: nothing was written"):
        subject = sound_pattern(pattern, model)
        sound = subject.pattern
        for finding in subject.findings:
            if finding.level == "warning":
                typer.echo(f"warning: {finding}", err=True)

        from ixsearch.output.progress import RunProgress
        from ixsearch.runtime.strip_indexers import strip_indexers as run

        with RunProgress({"copy": 1.0}, bars=not as_json) as progress:
            reports: list[Any] = []

            def show(name: str, done: int, total: int) -> None:
                if not reports:  # nothing is copied before all is checked
                    reports.append(progress.phase("copy"))
                reports[0](done / max(total, 1), name)

            stripped = run(model, sound, destination, show)
    check = shlex.join(["ixsearch", "validate", pattern, "--model", str(destination)])
    if as_json:
        said = to_json(stripped, sound.letters, model, destination)
        typer.echo(json.dumps(said | {"check": check}))
    else:
        typer.echo(f"{to_text(stripped, destination)}\ncheck it: {check}")


def to_json(stripped: Stripped, letters: str, model: Path, destination: Path) -> dict[str, Any]:
    """What `--json` prints."""
    head = {"model": str(model), "destination": str(destination), "pattern": letters}
    return head | dataclasses.asdict(stripped)


def to_text(stripped: Stripped, destination: Path) -> str:
    """What a person reads."""
    shards = {
        "linked": stripped.shards_linked,
        "copied": stripped.shards_copied,
        "rewritten": stripped.shards_rewritten,
        "left out": stripped.shards_dropped,
    }
    return (
        f"{destination}: without the indexers of {counted(len(stripped.layers), 'S layer')},"
        f" {counted(stripped.tensors_dropped, 'tensor')}, {stripped.bytes_saved:,} bytes in all\n"
        f"shards: {', '.join(f'{count} {how}' for how, count in shards.items() if count)}"
    )
