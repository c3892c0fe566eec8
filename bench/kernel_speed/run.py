"""One case: checked, timed, summed up."""

from __future__ import annotations

import time
from typing import Any

import torch

from kernel_speed.case import Case, Setup
from kernel_speed.figures import figures
from kernel_speed.peer import OURS
from kernel_speed.timing import in_turns, ready

SEED = 0


def row_of(case: Case, rounds: int, milliseconds: int) -> dict[str, Any]:
    """What was found. `failed` says who gave a wrong result or none, and why: they are not timed.

    After any failure the other cases still run.
    """
    began = time.perf_counter()
    row: dict[str, Any] = {"operation": case.operation, "rows": case.rows, "context": case.context}
    try:
        row |= _found(inputs_of(case), rounds, milliseconds)
    except Exception as error:
        row["failed"] = {OURS: _reason(error)}
    row["seconds"] = round(time.perf_counter() - began, 1)
    return row


def _found(setup: Setup, rounds: int, milliseconds: int) -> dict[str, Any]:
    calls, said, failed = {}, {}, {}
    for name, contender in {OURS: setup.ours, **setup.others}.items():
        try:
            calls[name], said[name] = ready(contender)
        except Exception as error:
            failed[name] = _reason(error)
    found: dict[str, Any] = {"check": said.get(OURS)} | ({"failed": failed} if failed else {})
    if OURS in calls:
        found |= figures(in_turns(calls, rounds, milliseconds), setup.peer)
    return found


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:300]}"


def inputs_of(case: Case) -> Setup:
    torch.cuda.empty_cache()
    torch.manual_seed(SEED)
    return case.setup()


def compile_all(case: Case) -> None:
    """Call every contender once; a failure comes again where it is reported."""
    setup = inputs_of(case)
    for contender in (setup.ours, *setup.others.values()):
        try:
            contender.call()
            torch.cuda.synchronize()
        except Exception:
            continue
