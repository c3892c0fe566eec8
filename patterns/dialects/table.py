"""All rows, and which of them an engine and its version belong to."""

from __future__ import annotations

from difflib import get_close_matches

from ixsearch.patterns.dialects import atom, sglang, tensorrt_llm, transformers, vllm
from ixsearch.patterns.dialects.dialect import Dialect
from ixsearch.patterns.dialects.version import EngineError, EngineSpec

DIALECTS: tuple[Dialect, ...] = (
    *vllm.ROWS,
    *sglang.ROWS,
    *transformers.ROWS,
    *tensorrt_llm.ROWS,
    *atom.ROWS,
)

ENGINES = tuple(dict.fromkeys(row.engine for row in DIALECTS))


def rows_of(engine: str) -> tuple[Dialect, ...]:
    """The rows of an engine, oldest first. Raises `EngineError` when there are none."""
    rows = tuple(row for row in DIALECTS if row.engine == engine)
    if rows:
        return rows
    near = get_close_matches(engine, ENGINES, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(ENGINES)}"
    raise EngineError(f"engine {engine!r} is not known here: {hint}")


def newest(engine: str) -> Dialect:
    """The row of an engine's newest known versions."""
    return rows_of(engine)[-1]


def find_dialect(spec: EngineSpec) -> Dialect:
    """The row that `spec` belongs to. Raises `EngineError` for what is not in the table."""
    rows = rows_of(spec.engine)
    found = [row for row in rows if spec.within(row.versions)]
    if len(found) == 1:
        return found[0]
    known = "; ".join(row.label for row in rows)
    if spec.version is None:
        raise EngineError(f"{spec} has more than one rule: name a version, of {known}")
    if not any(row.versions for row in rows):
        raise EngineError(f"{spec} is not known here: leave the version out, its main is {known}")
    raise EngineError(f"{spec} is not known here: known are {known}")
