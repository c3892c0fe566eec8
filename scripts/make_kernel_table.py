"""Write the table of kernels in docs/kernels.md from the newest bench/results/kernels-*.json.

python scripts/make_kernel_table.py
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ixsearch.output.markdown import table

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs/kernels.md")
RESULTS = Path("bench/results")
BEGIN = "<!-- kernels: made by python scripts/make_kernel_table.py -->\n"
END = "<!-- /kernels -->\n"
NOT_YET = "Their speed is not measured yet: `python bench/kernels.py` does, on a CUDA device.\n"

Row = dict[str, Any]


def page(root: Path = ROOT) -> str:
    """The page as it should be."""
    text = (root / PAGE).read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"{PAGE} has no line {BEGIN.strip()} with {END.strip()} behind it")
    return "".join((before, BEGIN, section(newest(root)), END, after))


def newest(root: Path = ROOT) -> tuple[str, Row] | None:
    """Path from the root, and result; None where nothing was measured."""
    read = [
        (path.relative_to(root).as_posix(), json.loads(path.read_text(encoding="utf-8")))
        for path in sorted((root / RESULTS).glob("kernels-*.json"))
    ]
    return max(read, key=lambda found: found[1]["date"], default=None)


def section(found: tuple[str, Row] | None) -> str:
    """What stands between the markers."""
    if found is None:
        return NOT_YET
    path, result = found
    rows = result["rows"]
    contexts = sorted({row["context"] for row in rows} - {None})
    parts = [_told(path, result), _by_context(rows, contexts), _others(rows)]
    return "\n".join(part for part in parts if part)


def _told(path: str, result: Row) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return (
        f"{result['device']}, driver {result['driver']}, {versions}, {result['date'][:10]},"
        f" `{result['command']}` ([all figures](../{path})). Shapes of DeepSeek-V3.2. Medians of"
        " graph replays with L2 flushed. A ratio is the peer's time over ours of the same round, in"
        f" brackets lowest to highest of {result['rounds']} rounds: above 1 ours is faster."
        " `indexer_total` is query, key store, scores and top-k, its peers' sum scores and top-k"
        " alone. \\* published figures, carried over by `torch.topk` of both runs.\n"
    )


def _by_context(rows: Sequence[Row], contexts: Sequence[int]) -> str:
    """A line an operation and number of rows, a column a context."""
    lines: dict[tuple[str, str], dict[int, Row]] = {}
    for row in rows:
        if row["context"] is not None:
            lines.setdefault((row["operation"], row["rows"]), {})[row["context"]] = row
    if not lines:
        return ""
    head = " | ".join(["operation", "rows", *(f"{c // 1024}k" for c in contexts), "peer"])
    made = []
    for (operation, count), at in lines.items():
        cells = (_cell(at[c]) if c in at else "" for c in contexts)
        peers = dict.fromkeys(row["peer"] for row in at.values() if "peer" in row)
        made.append([f"`{operation}`", count, *cells, ", ".join(peers).replace("*", "\\*")])
    return "\n".join(table(head, made)) + "\n"


def _others(rows: Sequence[Row]) -> str:
    made = [
        (f"`{row['operation']}`", row["rows"], _cell(row)) for row in rows if row["context"] is None
    ]
    return "\n".join(table("operation | rows | time", made)) + "\n" if made else ""


def _cell(row: Row) -> str:
    if "ours_us" not in row:
        return "failed"
    if "ratio" not in row:
        return _time(row["ours_us"])
    low, high = row["ratio_spread"]
    told = f"{_time(row['ours_us'])}, {row['ratio']:.2f} [{low:.2f}-{high:.2f}]"
    return told if row["met"] else f"{told}, must be {row['must']}"


def _time(us: float) -> str:
    return f"{us:.1f} us" if us < 1000 else f"{us / 1000:.2f} ms"


if __name__ == "__main__":
    (ROOT / PAGE).write_text(page(), encoding="utf-8")
