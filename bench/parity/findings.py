"""Rows of the report, and what of them is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Document
from parity.distance import Distance, distance
from parity.forward import forward
from parity.near_ties import Agreement, agreement, tolerance_of
from parity.observe import Observation
from parity.ranking import ranking
from parity.sample import ALL_FULL
from parity.settings import Pair
from parity.turns import KERNELS

MOST_KL = 1e-6
"""Nats, under all-F, of exact pairs."""
WIDEST = 1e-4
"""Of the largest logit: with a tolerance above this exact pairs would have near-ties anywhere."""
Row = dict[str, Any]


def distances_of(
    ours: Observation, theirs: Observation, documents: Sequence[Document], topk: int
) -> dict[str, Distance]:
    """Of each pattern that both have compared. Rows begin at `topk`: the one that predicts token t
    is t - 1 - topk.
    """
    scored = [[t - 1 - topk for t in d.scored_targets(topk)] for d in documents]
    return {
        letters: distance(
            ours.logits[letters],
            theirs.logits[letters],
            ours.chosen[letters],
            theirs.chosen[letters],
            scored,
        )
        for letters in both(ours.logits, theirs.logits)
    }


def distance_rows(
    pair: Pair, ours: Observation, theirs: Observation, apart: Mapping[str, Distance]
) -> list[Row]:
    """A row a compared pattern."""
    rows = []
    for letters, found in apart.items():
        losses = ours.losses.get(letters), theirs.losses.get(letters)
        own = ours.divergences.get(letters), theirs.divergences.get(letters)
        row = {"pair": pair.name, "pattern": letters, **_rounded(asdict(found))}
        row |= {"loss": losses[0], "loss_difference": _difference(*losses)}
        row |= {"divergence": own[0], "divergence_difference": _difference(*own)}
        rows.append(row)
    return rows


def ranking_row(pair: Pair, ours: Observation, theirs: Observation) -> Row:
    """All patterns that both have scored but all-F, whose divergence is 0 by definition."""
    known = [p for p in both(ours.divergences, theirs.divergences) if p != ALL_FULL]
    want, got = ({p: one.divergences[p] for p in known} for one in (theirs, ours))
    return {"pair": pair.name, **_rounded(asdict(ranking(want, got)))}


def greedy_rows(
    pair: Pair,
    ours: Observation,
    theirs: Observation,
    apart: Mapping[str, Distance],
    prompts: Sequence[Sequence[int]],
    judge: NativeEngine,
) -> list[Row]:
    """A row a decoded pattern. The tolerance comes from logits of documents, not of the prompts."""
    rows = []
    for letters in both(ours.written, theirs.written):
        pattern = Pattern(letters)

        def logits_after(tokens: Sequence[int], pattern: Pattern = pattern) -> torch.Tensor:
            return forward(judge.model, pattern, tokens)[0][-1]

        found = agreement(
            prompts,
            theirs.written[letters],
            ours.written[letters],
            tolerance_of(apart[letters].logit_usual),
            logits_after,
        )
        rows.append(_greedy_row(pair, letters, found, apart[letters]))
    return rows


def both(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Patterns that are in both, in the first one's order."""
    return [letters for letters in one if letters in other]


def _greedy_row(pair: Pair, letters: str, found: Agreement, apart: Distance) -> Row:
    row = {"pair": pair.name, "pattern": letters, **_rounded(asdict(found))}
    row["others"] = [asdict(one) for one in found.others]
    row["tolerance_share"] = float(f"{found.tolerance / apart.logit_largest:.3g}")
    return row


def wrong(report: Mapping[str, Any], pairs: Sequence[Pair]) -> list[str]:
    """In words, what is not as it must be.

    Tokens of fewer bits than the reference's are only counted: where rounding changes a selection,
    a token may change however clear it was.
    """
    exact = {pair.name for pair in pairs if pair.exact}
    alike = {pair.name for pair in pairs if pair.setting.dtype == pair.reference.dtype}
    found = [f"{name}: {why}" for name, why in report["failed"].items()]
    compared = {row["pair"] for row in report["greedy"]}
    found += [f"{pair.name}: not compared" for pair in pairs if pair.name not in compared]
    for row in report["distance"]:
        if row["pair"] in exact and row["pattern"] == ALL_FULL and not row["kl"] <= MOST_KL:
            found.append(f"{row['pair']}: KL {row['kl']:.1e} under all-F, above {MOST_KL:.0e}")
    for row in report["greedy"]:
        if row["others"] and row["pair"] in (exact | alike):
            count = len(row["others"])
            found.append(f"{row['pair']}, {row['pattern']}: {count} unequal not at a near-tie")
        if row["pair"] in exact and not row["tolerance_share"] <= WIDEST:
            found.append(
                f"{row['pair']}, {row['pattern']}: a near-tie may be"
                f" {row['tolerance_share']:.1e} of the largest logit wide, above {WIDEST:.0e}"
            )
    for row in report["search"]:
        if row["backend"] == KERNELS and not (row["kernel_calls"] or report["dry_run"]):
            found.append(f"search, {row['dtype']}: no kernel ran")
    return found


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else float(f"{one - other:.4g}")


def _rounded(values: Mapping[str, Any]) -> Row:
    """Floats to six significant digits."""
    return {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in values.items()}
