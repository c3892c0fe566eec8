"""Timing of contenders in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import triton

Call = Callable[[], Any]


@dataclass(frozen=True)
class Contender:
    """One implementation: what is timed, and what its output must pass first."""

    call: Call
    check: Callable[[Any], str] | None = None
    """Says how well the output fits the twin's; Mismatch where it does not."""
    in_graph: bool = True
    """Timed as a graph's replay, so without the time to launch it."""


def ready(contender: Contender) -> tuple[Call, str]:
    """What to time of it, and what its check says. It is compiled on the way."""
    output = contender.call()
    said = contender.check(output) if contender.check else "not checked"
    torch.cuda.synchronize()
    return _replay(contender.call) if contender.in_graph else contender.call, said


def in_turns(calls: Mapping[str, Call], rounds: int, milliseconds: int) -> list[dict[str, float]]:
    """Microseconds of each, a dict a round; every second round has the order turned around."""
    order = list(calls)
    return [
        {name: _median_us(calls[name], milliseconds) for name in order[:: -1 if turn % 2 else 1]}
        for turn in range(rounds)
    ]


def _replay(call: Call) -> Call:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def _median_us(call: Call, milliseconds: int) -> float:
    """Over some `milliseconds` of calls, each with an empty L2."""
    bench = triton.testing.do_bench
    return 1e3 * bench(call, warmup=5, rep=milliseconds, return_mode="median")
