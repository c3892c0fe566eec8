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
from parity.sample import ALL_FULL, Sample
from parity.settings import Pair

MOST_KL = 1e-6
"""Nats, under all-F, of exact pairs."""
WIDEST = 1e-3
"""Of the largest logit: with a tolerance above this exact pairs would have near-ties anywhere."""
Row = dict[str, Any]


def distance_rows(
    pair: Pair, ours: Observation, theirs: Observation, documents: Sequence[Document], topk: int
) -> list[Row]:
    """A row a compared pattern."""
    rows = []
    for letters in ours.logits:
        found = distance_of(ours, theirs, letters, documents, topk)
        losses = ours.losses.get(letters), theirs.losses.get(letters)
        own = ours.divergences.get(letters), theirs.divergences.get(letters)
        row = {"pair": pair.name, "pattern": letters, **_rounded(asdict(found))}
        row |= {"loss": losses[0], "loss_difference": _difference(*losses)}
        row |= {"divergence": own[0], "divergence_difference": _difference(*own)}
        rows.append(row)
    return rows


def distance_of(
    ours: Observation, theirs: Observation, letters: str, documents: Sequence[Document], topk: int
) -> Distance:
    """Rows begin at `topk`: the one that predicts token t is t - 1 - topk."""
    scored = [[t - 1 - topk for t in d.scored_targets(topk)] for d in documents]
    return distance(
        ours.logits[letters],
        theirs.logits[letters],
        ours.chosen[letters],
        theirs.chosen[letters],
        scored,
    )


def ranking_row(pair: Pair, ours: Observation, theirs: Observation) -> Row:
    """All patterns that were scored but all-F, whose divergence is 0 by definition."""
    want, got = (
        {p: value for p, value in one.divergences.items() if p != ALL_FULL}
        for one in (theirs, ours)
    )
    return {"pair": pair.name, **_rounded(asdict(ranking(want, got)))}


def greedy_rows(
    pair: Pair, ours: Observation, theirs: Observation, sample: Sample, judge: NativeEngine
) -> list[Row]:
    """A row a decoded pattern. The tolerance comes from logits of documents, not of the prompts."""
    prompts = [request.prompt for request in sample.requests()]
    documents, topk = sample.texts(), judge.describe().index_topk
    rows = []
    for letters, written in ours.written.items():
        apart = distance_of(ours, theirs, letters, documents, topk)
        pattern = Pattern(letters)

        def logits_after(tokens: Sequence[int], pattern: Pattern = pattern) -> torch.Tensor:
            return forward(judge.model, pattern, tokens)[0][-1]

        found = agreement(
            prompts,
            theirs.written[letters],
            written,
            tolerance_of(apart.logit_difference),
            logits_after,
        )
        rows.append(_greedy_row(pair, letters, found, apart))
    return rows


def _greedy_row(pair: Pair, letters: str, found: Agreement, apart: Distance) -> Row:
    row = {"pair": pair.name, "pattern": letters, **_rounded(asdict(found))}
    row["others"] = [asdict(one) for one in found.others]
    row["tolerance_share"] = float(f"{found.tolerance / apart.logit_largest:.3g}")
    return row


def wrong(report: Mapping[str, Any], pairs: Sequence[Pair]) -> list[str]:
    """In words, what is not as it must be."""
    exact = {pair.name for pair in pairs if pair.exact}
    found = [f"{name}: {why}" for name, why in report["failed"].items()]
    for row in report["distance"]:
        if row["pair"] in exact and row["pattern"] == ALL_FULL and not row["kl"] <= MOST_KL:
            found.append(f"{row['pair']}: KL {row['kl']:.1e} under all-F, above {MOST_KL:.0e}")
    for row in report["greedy"]:
        if row["others"]:
            count = len(row["others"])
            found.append(f"{row['pair']}, {row['pattern']}: {count} unequal not at a near-tie")
        if row["pair"] in exact and not row["tolerance_share"] <= WIDEST:
            found.append(
                f"{row['pair']}, {row['pattern']}: a near-tie may be"
                f" {row['tolerance_share']:.1e} of the largest logit wide, above {WIDEST:.0e}"
            )
    return found


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else float(f"{one - other:.4g}")


def _rounded(values: Mapping[str, Any]) -> Row:
    """Floats to six significant digits."""
    return {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in values.items()}
