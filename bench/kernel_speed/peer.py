"""What an operation is compared with, from the times of one round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernel_speed.published import TOPK

OURS = "ours"
DEEPGEMM = "DeepGEMM"
TORCH_TOPK = "torch.topk"

Round = Mapping[str, float]
"""Microseconds of each contender that ran."""


@dataclass(frozen=True)
class Peer:
    """A comparison, and the ratio (peer's time / ours) that it must have."""

    name: str
    needs: tuple[str, ...]
    """Contenders that must have run."""
    time: Callable[[Round], float]
    must: float | None

    def ratio(self, times: Round) -> float:
        return self.time(times) / times[OURS]


def scores_peer() -> Peer:
    return Peer(DEEPGEMM, (DEEPGEMM,), lambda times: times[DEEPGEMM], must=0.95)


def topk_peer(rows: int, context: int) -> Peer:
    """The best published one of this shape, carried over by `torch.topk`."""
    figures = TOPK[rows, context]

    def time(times: Round) -> float:
        return figures.carried_over(times[TORCH_TOPK])

    return Peer(f"{figures.peer}*", (TORCH_TOPK,), time, must=0.7 if rows > 64 else 0.9)


def indexer_peer(rows: int, context: int) -> Peer:
    """Scores and top-k of the peers, without any preparation, which ours has too."""
    topk = topk_peer(rows, context)

    def time(times: Round) -> float:
        return times[DEEPGEMM] + topk.time(times)

    return Peer(f"{DEEPGEMM} + {topk.name}", (DEEPGEMM, TORCH_TOPK), time, must=None)
