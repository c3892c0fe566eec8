"""What `ixsearch inspect` found, for people and for machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ixsearch.output.figures import DASH
from ixsearch.output.summary import FORMAT
from ixsearch.patterns.layer_list import layer_ranges
from ixsearch.runtime.inspect import EXPERT_SIZES, SIZES, THOUSAND, Inspection, OffloadPass


def print_inspection(console: Console, found: Inspection) -> None:
    """What the model is, then a table each for weights, caches and an --offload pass."""
    facts = Table.grid(padding=(0, 2, 0, 0))
    for what, said in _facts(found):
        facts.add_row(Text(what), Text(said))
    console.print(facts)
    for table in (_weights(found), _caches(found), _offload(found)):
        console.print()
        console.print(table)


def inspection_summary(found: Inspection) -> dict[str, Any]:
    """What `--json` prints: bytes, and parameters."""
    config = asdict(found.config) | {"moe_layers": sorted(found.config.moe_layers)}
    return {
        "format": FORMAT,
        "model": found.source,
        "architecture": found.architecture,
        "config": config,
        "pattern": found.pattern.letters,
        "indexer_layers": list(found.indexer_layers),
        "mtp_layers": list(found.mtp_layers),
        "weights": {name: asdict(size) for name, size in found.weights.items()},
        "total": asdict(found.main),
        "total_with_mtp": asdict(found.whole),
        "stored": None if found.stored is None else dict(found.stored),
        "dtypes": dict(found.dtypes),
        "caches": [
            {
                "format": cost.format,
                "latent_per_token_and_layer": cost.latent,
                "indexer_per_token_and_full_layer": cost.indexer,
                "per_1k_tokens_baseline": THOUSAND * cost.of(found.baseline),
                "per_1k_tokens_own_pattern": THOUSAND * cost.of(found.pattern),
            }
            for cost in found.caches
        ],
        "offload": [asdict(one) for one in found.offload],
        "tokens_of_1k": THOUSAND,
        "problem": found.problem,
    }


def size(count: float) -> str:
    """Bytes in units of 1000: `689.5 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.95:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.2f} TB"


def number(count: int) -> str:
    """Parameters: `671.9 B`."""
    for unit in ("", "k", "M"):
        if count < 999.95:
            return f"{count:.1f} {unit}" if unit else str(count)
        count /= 1000
    return f"{count:.1f} B"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return DASH
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _facts(found: Inspection) -> list[tuple[str, str]]:
    c = found.config
    sizes = ", ".join(f"{key} {getattr(c, key)}" for key in SIZES)
    facts = [
        ("model", found.source),
        ("family", f"{c.model_type}, {found.architecture}"),
        ("layers", f"{c.num_hidden_layers}, beside them MTP: {layer_ranges(found.mtp_layers)}"),
        ("pattern", f"{found.pattern.letters} ({found.pattern.num_full} F)"),
        ("indexers", f"layers {layer_ranges(found.indexer_layers)}; the others can only be S"),
        ("sizes", sizes),
    ]
    if len(found.indexer_layers) == c.num_hidden_layers:
        facts[4] = ("indexers", "all layers")
    if c.moe_layers:
        experts = ", ".join(f"{key} {getattr(c, key)}" for key in EXPERT_SIZES)
        facts.append(("experts", f"layers {layer_ranges(tuple(sorted(c.moe_layers)))}: {experts}"))
    if found.dtypes:
        types = ", ".join(f"{kind} {size(count)}" for kind, count in sorted(found.dtypes.items()))
        facts.append(("in files", types))
    return facts


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.title_justify = "left"
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    return table


def _weights(found: Inspection) -> Table:
    stored = found.stored
    columns = ["", "parameters", *([] if stored is None else ["in the files"]), "bfloat16", "FP8"]
    table = _table("Weights", *columns)
    rows = [(name, weight, {name}) for name, weight in found.weights.items()]
    main = {name for name in found.weights if name != "MTP"} | {"other"}
    rows.append(("the model", found.main, main))
    if found.mtp_layers:
        rows.append(("with MTP", found.whole, main | {"MTP"}))
    for name, weight, parts in rows:
        held = [] if stored is None else [size(sum(stored.get(part, 0) for part in parts))]
        table.add_row(
            name, number(weight.parameters), *held, size(weight.in_bf16), size(weight.in_fp8)
        )
    return table


def _caches(found: Inspection) -> Table:
    most = found.baseline.num_full
    table = _table(
        f"Caches of {THOUSAND} tokens, MTP layers apart",
        "format",
        "latent, bytes a token",
        "indexer, in F",
        "all-F" if most == len(found.baseline) else f"{most} F, the most",
        f"{found.pattern.num_full} F",
    )
    for cost in found.caches:
        whole, own = (THOUSAND * cost.of(p) for p in (found.baseline, found.pattern))
        table.add_row(cost.format, str(cost.latent), str(cost.indexer), size(whole), size(own))
    return table


def _offload(found: Inspection) -> Table:
    table = _table(
        "A pass with --offload",
        "weights",
        "to read",
        "time",
        "on the device at once",
        f"states of {THOUSAND} tokens",
    )
    for one in found.offload:
        table.add_row(
            one.weights,
            size(one.read_bytes),
            _time(one),
            size(one.largest_layer_bytes),
            f"{size(one.state_bytes)} a prefix",
        )
    one = found.offload[0]
    table.caption = (
        f"Beside these, {THOUSAND} tokens of the document that is in a layer take"
        f" {size(one.work_bytes)}, its index scores {size(one.score_bytes)} at the most."
    )
    table.caption_justify = "left"
    return table


def _time(one: OffloadPass) -> str:
    if one.seconds is None or one.gigabytes_per_second is None:
        return f"{DASH} (--read-gbps)"
    return f"{duration(one.seconds)} at {one.gigabytes_per_second:.3g} GB/s"
