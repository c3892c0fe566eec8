"""From a configuration and overrides to the letters that an engine will really run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ixsearch.patterns.dialects.dialect import Dialect, Mtp, Odd, Raises
from ixsearch.patterns.dialects.keys import FREQUENCY_KEYS, Keys, gather, model_values
from ixsearch.patterns.dialects.reader import (
    ABSENT,
    Spelled,
    Stop,
    read_frequency,
    read_pattern,
    read_types,
    whole_number,
)
from ixsearch.patterns.dialects.table import find_dialect
from ixsearch.patterns.dialects.version import parse_engine
from ixsearch.patterns.errors import ModelError


@dataclass(frozen=True)
class Resolved:
    """What an engine makes of a configuration and its overrides."""

    dialect: Dialect
    letters: str = ""
    """One a layer. They may begin with S. Empty: the engine ends with `failure`."""
    mtp_letters: str = ""
    """The same rule's letters for the MTP layers."""
    decided_by: tuple[str, ...] = ()
    """The keys that were read; none: nothing sets a pattern."""
    unread: tuple[str, ...] = ()
    """Keys that are given, and do not count here."""
    misplaced: tuple[str, ...] = ()
    """Keys on a level of the configuration where no engine looks."""
    needs: tuple[str, ...] = ()
    """A pattern is given, but one of these must be on too."""
    failure: Raises | None = None
    bent: Mapping[int, str] = field(default_factory=dict)
    """Layer -> what stands there, where the engine takes it for another letter; "": nothing."""
    dropped: int = 0
    """So many letters are behind the last layer."""


def resolve(
    engine: str,
    version: str | None,
    config: Mapping[str, Any],
    overrides: Mapping[str, Any] | None = None,
) -> Resolved:
    """What `engine` of `version` runs for a model with this config.json and these overrides.

    `version` None is for engines that the table knows by date. Raises `EngineError` for what is not
    in the table, and `ModelError` where the config has no usable `num_hidden_layers`.
    """
    spec = parse_engine(engine if version is None else f"{engine}=={version}")
    return resolve_in(find_dialect(spec), config, overrides or {})


def resolve_in(
    dialect: Dialect, config: Mapping[str, Any], overrides: Mapping[str, Any]
) -> Resolved:
    """As `resolve`, for a row of the table."""
    values = model_values(config)
    keys = gather(config, overrides)
    try:
        filled = _filled(dialect, keys, values)
        resolved = _read(dialect, filled, values)
    except Stop as stop:
        return Resolved(dialect, failure=stop.failure, decided_by=tuple(keys.effective))
    return replace(resolved, misplaced=keys.misplaced)


def _filled(dialect: Dialect, keys: Keys, values: Mapping[str, Any]) -> Keys:
    """The keys once a configuration class has turned the config's own ones into types."""
    version = dialect.filled_by.get(str(values.get("model_type", "")))
    if version is None:
        return keys
    own = find_dialect(parse_engine(f"transformers=={version}"))
    config = dict(keys.config)
    if own.pops_keys and config.get("indexer_types") is None:
        for key in POPPED:
            if key not in dialect.restores:
                config.pop(key, None)
    types = _types(own, keys.config, _layers(values))
    if keys.overrides.get("indexer_types") is not None:
        _checked_types(own, keys.overrides["indexer_types"])
    return replace(keys, config={**config, "indexer_types": types})


POPPED = ("index_topk_pattern", "index_topk_freq")
"""What transformers 5.6 to 5.10 took out of the configuration."""


def _types(own: Dialect, config: Mapping[str, Any], layers: int) -> list[Any]:
    """As long as the spelling is: nothing compares it with the number of layers yet."""
    given, pattern = config.get("indexer_types"), config.get("index_topk_pattern")
    if given is None and isinstance(pattern, list | tuple):
        given = pattern
    if given is not None:
        return _checked_types(own, given)
    count = len(pattern) if isinstance(pattern, str) else layers
    spelled, _ = _spelling(own, config, count)
    return ["full" if letter == "F" else "shared" for letter in spelled.letters]


def _checked_types(own: Dialect, given: Any) -> list[Any]:
    outcome = own.types.no_word
    is_list = isinstance(given, list | tuple)
    if isinstance(outcome, Raises) and not (is_list and all(isinstance(e, str) for e in given)):
        raise Stop(outcome)
    return list(given)


def _read(dialect: Dialect, keys: Keys, values: Mapping[str, Any]) -> Resolved:
    layers, mtp = _layers(values), _whole(values, "num_nextn_predict_layers", 0)
    effective = keys.effective
    given = tuple(key for key, value in effective.items() if value is not None)
    model_type = str(values.get("model_type", ""))
    if not dialect.shares(model_type):
        return Resolved(dialect, "F" * layers, "F" * mtp, unread=given)
    if effective.get("indexer_types", ABSENT) is None and isinstance(dialect.types.null, Raises):
        raise Stop(dialect.types.null)
    mtp_letters = _mtp_letters(dialect, keys, layers, mtp)
    if not _is_on(dialect, effective):
        needs = dialect.switch if _would_share(dialect, effective, layers) else ()
        unread = tuple(key for key in given if key != "use_index_cache")
        return Resolved(dialect, "F" * layers, mtp_letters, unread=unread, needs=needs)
    spelled, read = _spelling(dialect, effective, layers)
    letters = "F" + spelled.letters[1:] if dialect.first_is_full else spelled.letters
    looked_at = (*read, *dialect.switch)
    return Resolved(
        dialect,
        letters,
        mtp_letters,
        decided_by=read,
        unread=tuple(key for key in given if key not in looked_at),
        bent=spelled.bent,
        dropped=spelled.dropped,
    )


def _mtp_letters(dialect: Dialect, keys: Keys, layers: int, mtp: int) -> str:
    """MTP layers that go by the rule see config.json alone: overrides do not reach the draft."""
    if not mtp or dialect.mtp is Mtp.FULL:
        return "F" * mtp
    with suppress(Stop):  # then the draft fails; the model itself does not
        if _is_on(dialect, keys.config):
            return _spelling(dialect, keys.config, layers + mtp)[0].letters[layers:]
    return "F" * mtp


def _would_share(dialect: Dialect, keys: Mapping[str, Any], layers: int) -> bool:
    """Whether the switch is all that is missing."""
    with suppress(Stop):
        return "S" in _spelling(dialect, keys, layers)[0].letters
    return False


def _is_on(dialect: Dialect, keys: Mapping[str, Any]) -> bool:
    if not dialect.switch or keys.get("use_index_cache"):
        return True
    frequency = keys.get("index_topk_freq", ABSENT)
    counts = "index_topk_freq" in dialect.switch and frequency is not ABSENT
    if counts and whole_number(frequency) > 1:
        return True
    return "indexer_types" in dialect.reads and keys.get("indexer_types") is not None


def _spelling(
    dialect: Dialect, keys: Mapping[str, Any], layers: int
) -> tuple[Spelled, tuple[str, ...]]:
    """The letters, and the keys that they come from."""
    for key in dialect.reads:
        value = keys.get(key)
        if key == "index_topk_freq":
            return _by_frequency(dialect, keys, layers)
        if value is None or (value == "" and dialect.letters.empty is Odd.ABSENT):
            continue
        if key == "indexer_types":
            return read_types(value, layers, dialect.types), (key,)
        return read_pattern(value, layers, dialect), (key,)
    return Spelled("F" * layers), ()


def _by_frequency(
    dialect: Dialect, keys: Mapping[str, Any], layers: int
) -> tuple[Spelled, tuple[str, ...]]:
    frequency, offset = (keys.get(key, ABSENT) for key in FREQUENCY_KEYS)
    spelled = read_frequency(frequency, offset, layers, dialect.frequency)
    looked_at = FREQUENCY_KEYS if dialect.frequency.reads_offset else FREQUENCY_KEYS[:1]
    return spelled, tuple(key for key in looked_at if key in keys)


def _layers(values: Mapping[str, Any]) -> int:
    return _whole(values, "num_hidden_layers", None)


def _whole(values: Mapping[str, Any], key: str, default: int | None) -> int:
    value = values.get(key, default)
    if value is None and default is not None:
        value = default
    if type(value) is not int or not 0 <= value <= 100_000 or (default is None and value < 1):
        raise ModelError(f"{key} is {value!r}: a config.json has a whole number there")
    return value
