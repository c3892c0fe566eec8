"""From the times of some rounds to what is said of an operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from kernel_speed.peer import OURS, Peer, Round


def figures(rounds: Sequence[Round], peer: Peer | None) -> dict[str, Any]:
    """Medians over rounds and their spread, lowest to highest.

    A ratio is the peer's time over ours of the same round: above 1 ours is faster. What a peer
    needs and did not run leaves the comparison out.
    """
    times = {name: [one[name] for one in rounds] for name in rounds[0]}
    found: dict[str, Any] = dict(_spread("ours_us", times.pop(OURS), 2))
    if peer and set(peer.needs) <= set(times):
        ratios = [peer.ratio(one) for one in rounds]
        found["peer"] = peer.name
        found |= _spread("peer_us", [peer.time(one) for one in rounds], 2)
        found |= _spread("ratio", ratios, 3)
        found |= {"must": peer.must, "met": peer.must is None or median(ratios) >= peer.must}
    found["timed_us"] = {name: round(median(values), 2) for name, values in times.items()}
    return found


def missed(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows of which ours failed, or whose ratio is below what it must be."""
    wrong = (row for row in rows if OURS in row.get("failed", ()) or not row.get("met", True))
    return [label(row) for row in wrong]


def label(row: Mapping[str, Any]) -> str:
    return f"{row['operation']} {shape(row)}"


def shape(row: Mapping[str, Any]) -> str:
    context = row["context"]
    return row["rows"] if context is None else f"{row['rows']} x {context // 1024}k"


def _spread(name: str, values: Sequence[float], digits: int) -> dict[str, Any]:
    lowest, highest = (round(edge(values), digits) for edge in (min, max))
    return {name: round(median(values), digits), f"{name}_spread": [lowest, highest]}
