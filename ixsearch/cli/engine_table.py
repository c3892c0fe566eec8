"""The table of engines, for people and machines."""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass
from typing import Any

from ixsearch.cli.wrapping import wrapped
from ixsearch.patterns.dialects import DIALECTS, Dialect


def engine_table() -> str:
    """A block for each row."""
    return "\n\n".join("\n".join(_block(row)) for row in DIALECTS)


def row_facts(row: Dialect) -> list[tuple[str, str]]:
    """What is known of a row, as pairs of what and what is so."""
    if not row.reads:
        return [("reads", "no key: all layers are F"), ("sources", "; ".join(row.sources))]
    rule = row.frequency
    offset = f"index_skip_topk_offset, {rule.offset} when absent" if rule.reads_offset else "2"
    if not rule.reads_offset:
        offset = f"{rule.offset}, whatever index_skip_topk_offset says"
    facts = [
        ("reads", " > ".join(row.reads)),
        ("only if", " or ".join(row.switch) + " is on" if row.switch else ""),
        ("models", ", ".join(row.only_types)),
        ("S layers", f"max(layer - offset + {rule.shift}, 0) % frequency != 0; offset: {offset}"),
        ("frequency", f"null {rule.null}; 0 {rule.zero}; below 0 {rule.negative}"),
        ("letters", _letters(row)),
        ("layer 0 = S", row.first_shared),
        ("MTP layers", row.mtp.value),
        ("stage on S", f"has {row.stage.value}"),
        ("stages get", row.split.value),
        ("spare weights", str(row.spare_indexers or "are skipped")),
        ("missing ones", row.bare_full),
        ("in config.json", _filled(row)),
        ("read up to", row.read_to),
        ("sources", "; ".join(row.sources)),
    ]
    return [(what, said) for what, said in facts if said]


def engines_json() -> dict[str, Any]:
    """All rows, all fields."""
    return {"engines": [_plain(row) for row in DIALECTS]}


def _block(row: Dialect) -> list[str]:
    facts = (wrapped(f"  {what:<15}", said, " " * 17) for what, said in row_facts(row))
    return [row.name, *(line for fact in facts for line in fact)]


def _letters(row: Dialect) -> str:
    rule = row.letters
    return (
        f"missing {rule.short}; lower case {rule.lower}; others {rule.other}; too many {rule.long}"
    )


def _filled(row: Dialect) -> str:
    parts = [
        f"transformers {version} makes indexer_types of the keys of {kind}"
        for kind, version in row.filled_by.items()
    ]
    if row.may_pop:
        parts.append(f"transformers {row.may_pop} drops the keys of GLM models")
    return "; ".join(parts)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        if set(asdict(value)) == {"error", "when"}:
            return {"raises": value.error, "when": value.when}
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return dict(value) if isinstance(value, dict) else value
