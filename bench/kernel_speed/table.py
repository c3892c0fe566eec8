"""The table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from kernel_speed.figures import shape

COLUMNS = ("ours, us", "peer, us", "ratio [spread]", "must", "check")


def table(rows: Sequence[Mapping[str, Any]]) -> Table:
    made = Table(box=None, header_style="bold")
    for title in ("operation", "shape"):
        made.add_column(title, no_wrap=True)
    made.add_column("peer")
    for title in COLUMNS:
        made.add_column(title, justify="right")
    for row in rows:
        made.add_row(*map(escape, cells(row)))
    return made


def cells(row: Mapping[str, Any]) -> list[str]:
    where = [row["operation"], shape(row)]
    if "ours_us" not in row:
        return [*where, "", "failed", "", "", "", "; ".join(row["failed"].values())]
    check = row["check"]
    if row.get("failed"):
        check += "; " + "; ".join(f"{name} {why}" for name, why in row["failed"].items())
    ours = f"{row['ours_us']:.1f}"
    if "ratio" not in row:
        return [*where, "", ours, "", "", "", check]
    low, high = row["ratio_spread"]
    ratio = f"{row['ratio']:.3f} [{low:.3f}-{high:.3f}]"
    return [*where, row["peer"], ours, f"{row['peer_us']:.1f}", ratio, _bar(row), check]


def _bar(row: Mapping[str, Any]) -> str:
    if row["must"] is None:
        return ""
    return f"{row['must']} {'met' if row['met'] else 'MISSED'}"
