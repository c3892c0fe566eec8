"""Everything there is to say about a pattern: what was read, what is wrong, what will run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ixsearch.patterns.checks import (
    DSA_ARCHITECTURES,
    check_for_model,
    check_length,
    check_letters,
    check_published,
    check_same_model,
)
from ixsearch.patterns.checks.engine import Setting, check_run
from ixsearch.patterns.checks.keys import Written, read_written
from ixsearch.patterns.checks.model import own_pattern
from ixsearch.patterns.dialects import (
    ENGINES,
    Dialect,
    EngineError,
    EngineSpec,
    Resolved,
    find_dialect,
    newest,
    resolve_in,
    rows_of,
)
from ixsearch.patterns.dialects.keys import NEST, PATTERN_KEYS, is_nested, model_values
from ixsearch.patterns.errors import IxsearchError, PatternError
from ixsearch.patterns.export.spelling import overrides_for
from ixsearch.patterns.findings import Finding, Place, merged, position
from ixsearch.patterns.model_config import MODEL_TYPES, ModelConfig
from ixsearch.patterns.pattern import Pattern
from ixsearch.patterns.reading import Reading
from ixsearch.patterns.stages import Stages


@dataclass(frozen=True)
class Options:
    """What a pattern is checked for. `engines` empty: the newest known version of each."""

    engines: tuple[EngineSpec, ...] = ()
    stages: Stages | None = None
    mtp: bool = False
    serving: bool = True
    """Whether to ask at all what engines make of it, and what was published."""


@dataclass(frozen=True)
class Report:
    """The result of a check."""

    reading: Reading
    model: ModelConfig | None = None
    letters: str = ""
    """What is written, right or wrong; empty where no pattern could be read."""
    written: Mapping[str, str] = field(default_factory=dict)
    """The letters that each key means."""
    runs: tuple[Resolved, ...] = ()
    """What each engine makes of it."""
    findings: tuple[Finding, ...] = ()

    @cached_property
    def pattern(self) -> Pattern | None:
        """The pattern, when the letters make one."""
        try:
            return Pattern(self.letters)
        except PatternError:
            return None

    def count(self, level: str) -> int:
        return sum(f.level == level for f in self.findings)

    def ok(self, strict: bool = False) -> bool:
        """No errors; `strict`: no warnings either."""
        return not self.count("error") and not (strict and self.count("warning"))


def lint(
    reading: Reading, model: ModelConfig | None = None, options: Options | None = None
) -> Report:
    """Check what was read; `model` is what it should run on, where that is known."""
    options = options or Options()
    model = model or reading.config
    findings = list(reading.findings)
    layers = _num_layers(reading, model)
    written = read_written(reading.keys, layers, reading)
    findings += written.findings
    if _is_hopeless(reading.keys, findings):
        return Report(reading, model, findings=_in_order(findings))
    letters = written.letters.get(written.key, "")
    if not written.letters and layers and not any(f.level == "error" for f in findings):
        letters = _own_letters(reading, model, layers)
        message = "no key sets a pattern: what runs is the config's own"
        findings.append(Finding("IX304", message))
    findings += _check_pattern(letters, written, reading, model, layers)
    if options.serving:
        findings += _check_published(letters, model, reading.place(written.key))
    layers = layers or len(letters)
    findings += _check_stages(options.stages, layers)
    runs: tuple[Resolved, ...] = ()
    if options.serving:
        runs, told = _run_engines(reading, written, model, layers, options, findings)
        findings += told
    return Report(reading, model, letters, written.letters, runs, _in_order(findings))


def _in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Each once, in the order of the file."""
    return tuple(sorted(dict.fromkeys(findings), key=position))


def _is_hopeless(keys: Mapping[str, Any], findings: list[Finding]) -> bool:
    """Whether there is nothing to go on with."""
    codes = {f.code for f in findings if f.level == "error"}
    return "IX108" in codes or (not keys and bool(codes))


def _own_letters(reading: Reading, model: ModelConfig | None, layers: int) -> str:
    own = own_pattern(model) if model and not reading.config else None
    return own.letters if own else "F" * layers


def _num_layers(reading: Reading, model: ModelConfig | None) -> int | None:
    if model:
        return model.num_hidden_layers
    if reading.pattern_file and reading.pattern_file.model.num_hidden_layers:
        return reading.pattern_file.model.num_hidden_layers
    for key in ("index_topk_pattern", "indexer_types"):
        value = reading.keys.get(key)
        if isinstance(value, str | list) and value:
            return len(value)
    return None


def _check_pattern(
    letters: str,
    written: Written,
    reading: Reading,
    model: ModelConfig | None,
    layers: int | None,
) -> list[Finding]:
    key = written.key
    place = reading.place(key)

    def where(layer: int):
        return reading.letter_place(key, layer)

    if not key and not letters:
        return []
    found = check_letters(letters, where) if key else []
    if model:
        found += check_for_model(letters, model, where)
        if reading.pattern_file:
            found += check_same_model(reading.pattern_file.model, model, place)
    elif layers:
        found += check_length(letters, layers, place=place)
    return found


def _check_published(letters: str, model: ModelConfig | None, place: Place | None) -> list[Finding]:
    with suppress(PatternError):
        return check_published(Pattern(letters), model, place)
    return []


def _check_stages(stages: Stages | None, layers: int) -> list[Finding]:
    problem = stages.problem(layers) if stages and layers else ""
    if not problem:
        return []
    return [Finding("IX213", problem, "give one number a stage, of layers, all layers together")]


def _run_engines(
    reading: Reading,
    written: Written,
    model: ModelConfig | None,
    layers: int,
    options: Options,
    before: list[Finding],
) -> tuple[tuple[Resolved, ...], list[Finding]]:
    findings: list[Finding] = []
    runs: list[Resolved] = []
    if not layers:
        message = "the pattern depends on the number of layers, which is not known"
        return (), [Finding("IX216", message, "give --model")]
    if model is not None and not _is_known(model):
        return (), []
    setting = Setting(reading, written.letters, model, options.stages, options.mtp)
    config = _config(reading, model, layers, options.mtp)
    is_wrong = any(f.level == "error" for f in before)
    for dialect, asked in _dialects(options.engines, reading, config, findings):
        try:
            run = resolve_in(dialect, config, _overrides(dialect, reading, written, config))
        except IxsearchError as error:
            findings.append(Finding("IX215", str(error)))
            return (), findings
        runs.append(run)
        told = check_run(run, setting)
        findings += told if asked else _if_it_matters(told, is_wrong)
    return tuple(runs), merged(findings)


def _is_known(model: ModelConfig) -> bool:
    """Whether the rows are about models of this kind; IX206 says so where they are not."""
    return model.architecture in DSA_ARCHITECTURES or model.model_type in MODEL_TYPES


def _config(
    reading: Reading, model: ModelConfig | None, layers: int, mtp: bool
) -> Mapping[str, Any]:
    if model is not None and reading.config not in (None, model):
        return _with_keys(model.values, reading.keys)
    if model is not None:
        return model.values
    known = reading.pattern_file.model.config() if reading.pattern_file else {}
    return {**known, "num_hidden_layers": layers, "num_nextn_predict_layers": int(mtp)}


def _with_keys(values: Mapping[str, Any], keys: Mapping[str, Any]) -> Mapping[str, Any]:
    """A configuration with the pattern's keys of another one."""
    own = {k: v for k, v in model_values(values).items() if k not in PATTERN_KEYS} | dict(keys)
    return {**values, NEST: own} if is_nested(values) else own


def _overrides(
    dialect: Dialect, reading: Reading, written: Written, config: Mapping[str, Any]
) -> Mapping[str, Any]:
    if reading.portable and "index_topk_pattern" in written.letters:
        return overrides_for(dialect, written.letters["index_topk_pattern"], config)
    if reading.engine not in ("", dialect.engine):
        return {}
    return reading.overrides


def _dialects(
    specs: tuple[EngineSpec, ...],
    reading: Reading,
    config: Mapping[str, Any],
    findings: list[Finding],
) -> list[tuple[Dialect, bool]]:
    """The rows to check, each with whether it was asked for."""
    if not specs:
        names = (reading.engine,) if reading.engine else ENGINES
        rows = [newest(name) for name in names]
        kind = str(model_values(config).get("model_type", ""))
        return [(row, False) for row in rows if row.shares(kind)]
    chosen: dict[Dialect, bool] = {}
    for spec in specs:
        try:
            rows = rows_of(spec.engine) if spec.version is None else (find_dialect(spec),)
            rows = tuple(row for row in rows if row.reads or spec.version is not None)
        except EngineError as error:
            findings.append(Finding("IX401", str(error), "name an engine and version of the table"))
            continue
        if reading.engine not in ("", spec.engine):
            message = f"{spec.engine} does not read a {reading.format}"
            findings.append(Finding("IX405", message, "`ixsearch export` writes a file for it"))
            continue
        if spec.is_after(rows[-1].read_to):
            message = f"{spec}: read was up to {rows[-1].read_to}"
            findings.append(
                Finding("IX409", message, "try it on a long prompt before you trust it")
            )
        chosen |= dict.fromkeys(rows, True)
    return list(chosen.items())


def _if_it_matters(told: list[Finding], is_wrong: bool) -> list[Finding]:
    """Of an engine that nobody named: no trifles, and nothing twice."""
    trifles = ("IX403", "IX404", "IX405", "IX408", "IX410") if is_wrong else ("IX403",)
    kept = [f for f in told if f.code not in trifles]
    return [f if f.code == "IX212" else f.softened() for f in kept]
