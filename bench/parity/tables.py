"""The tables for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

Row = Mapping[str, Any]
Column = tuple[str, Callable[[Row], str]]


def distances(rows: Sequence[Row]) -> Table:
    return _table(
        "Distance: setting : reference",
        [
            ("", lambda r: r["pair"]),
            ("pattern", lambda r: r["pattern"]),
            ("mean KL", lambda r: f"{r['kl']:.1e}"),
            ("scored", lambda r: f"{r['kl_scored']:.1e}"),
            ("logits", lambda r: f"{r['logit_difference']:.1e}"),
            ("99 %", lambda r: f"{r['logit_usual']:.1e}"),
            ("median", lambda r: f"{r['logit_median']:.1e}"),
            ("same sets", lambda r: f"{r['same_sets']:.4f}"),
            ("common", lambda r: f"{r['common']:.4f}"),
            ("loss +-", lambda r: _signed(r["loss_difference"])),
            ("divergence +-", lambda r: _signed(r["divergence_difference"])),
        ],
        rows,
    )


def rankings(rows: Sequence[Row]) -> Table:
    return _table(
        "Patterns ranked by divergence",
        [
            ("", lambda r: r["pair"]),
            ("patterns", lambda r: str(r["patterns"])),
            ("same order", lambda r: _yes(r["same_order"])),
            ("swapped pairs", lambda r: f"{r['swapped']} of {r['pairs']}"),
            ("widest swap", lambda r: f"{r['widest_swap']:.1%}"),
            ("same best", lambda r: _yes(r["same_best"])),
            ("largest change", lambda r: f"{r['largest_change']:.1e}"),
        ],
        rows,
    )


def greedy(rows: Sequence[Row]) -> Table:
    return _table(
        "Greedy tokens",
        [
            ("", lambda r: r["pair"]),
            ("pattern", lambda r: r["pattern"]),
            ("equal prompts", lambda r: f"{r['equal_prompts']} of {r['prompts']}"),
            ("equal tokens", lambda r: f"{r['equal_tokens']} of {r['tokens']}"),
            ("near-ties", lambda r: str(r["near_ties"])),
            ("others", lambda r: str(len(r["others"]))),
            ("largest gap", lambda r: f"{r['largest_gap']:.1e}"),
            ("tolerance", lambda r: f"{r['tolerance']:.1e}"),
        ],
        rows,
    )


def searches(rows: Sequence[Row]) -> Table:
    return _table(
        "Search",
        [
            ("", lambda r: f"{r['search']}, {r['dtype']}"),
            ("by", lambda r: r["backend"]),
            ("s", lambda r: f"{r['seconds']:.1f}"),
            ("evaluations", lambda r: str(r["evaluations"])),
            ("forwards", lambda r: f"{r['forwards']:.1f}"),
            ("same patterns", lambda r: _yes(r["same_patterns"])),
            ("best", lambda r: "  ".join(b["pattern"] for b in r["best"].values())),
        ],
        rows,
    )


def speeds(rows: Sequence[Row]) -> Table:
    return _table(
        "Tokens a second; faster: twins' time / kernels'; gain: first pattern's time / this one's",
        [
            ("", lambda r: f"{r['model']}, {r['dtype']}, {r['caches']}"),
            ("pattern", lambda r: r["pattern"]),
            ("", lambda r: r["what"]),
            ("kernels", lambda r: f"{r['kernels_tokens_per_s']:,.0f}"),
            ("torch", lambda r: f"{r['torch_tokens_per_s']:,.0f}"),
            ("faster", lambda r: _ratio(r, "faster")),
            ("gain", lambda r: _ratio(r, "gain")),
            ("rounds", lambda r: str(r["rounds"])),
        ],
        rows,
    )


def _table(title: str, columns: Sequence[Column], rows: Sequence[Row]) -> Table:
    made = Table(box=None, header_style="bold", title=title, title_justify="left")
    for i, (name, _) in enumerate(columns):
        made.add_column(name, justify="left" if i < 2 else "right", no_wrap=i > 0)
    for row in rows:
        made.add_row(*(escape(cell(row)) for _, cell in columns))
    return made


def _ratio(row: Row, name: str) -> str:
    if name not in row:
        return ""
    low, high = row[f"{name}_spread"]
    return f"{row[name]:.2f} [{low:.2f}-{high:.2f}]"


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.1e}"


def _yes(value: bool) -> str:
    return "yes" if value else "NO"
