"""Typed values out of a parsed `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ixsearch.patterns import ModelError
from ixsearch.patterns.counting import counted
from ixsearch.patterns.findings import clip

MAX_SIZE = 2**31 - 1
"""No width or count of a model is larger."""


class ConfigError(ModelError):
    """A configuration that this runtime cannot run."""


class Values:
    """The keys of one JSON object. Null counts as absent; errors name the key and the file.

    Args:
        inside: the key that holds the object, where it is not the file's own.
    """

    def __init__(self, data: Mapping[str, Any], where: str, inside: str = "") -> None:
        self.data = data
        self.where = where
        self.inside = inside

    def error(self, message: str) -> ConfigError:
        return ConfigError(f"{self.where}: {message}")

    def wrong(self, key: str, needed: str) -> ConfigError:
        """`key` is not what is `needed`."""
        name = f"{self.inside}.{key}" if self.inside else key
        return self.error(f"{name} is {clip(self.data.get(key))}: {needed}")

    def get(self, key: str) -> Any:
        return self.data.get(key)

    def whole(
        self, key: str, default: int | None = None, least: int = 1, most: int = MAX_SIZE
    ) -> int:
        """A whole number; without a `default` it must be there."""
        value = self.data.get(key, default)
        value = default if value is None else value
        if value is None:
            raise self.error(f"{key} is missing: is this the config.json of a DSA model?")
        if type(value) is not int or not least <= value <= most:
            raise self.wrong(key, f"a whole number from {least} to {most} is needed")
        return value

    def number(self, key: str, default: float, least: float, most: float) -> float:
        """A number within both bounds: never NaN or infinite."""
        value = self.data.get(key)
        if value is None:
            return default
        if not is_number(value) or not least <= value <= most:
            raise self.wrong(key, f"a number from {least:g} to {most:g} is needed")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.data.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false is needed, without quotes")
        return value

    def word(self, key: str, known: tuple[str, ...]) -> str:
        """One of `known`; the first where the key is absent."""
        value = self.data.get(key)
        if value is None:
            return known[0]
        if value not in known:
            raise self.wrong(key, f"{' and '.join(known)} can be run")
        return value

    def part(self, key: str) -> Values:
        """An object within; an empty one where the key is absent."""
        value = self.data.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise self.wrong(key, "an object is needed")
        return Values(value or {}, self.where, key)

    def words_by_layer(
        self, key: str, known: tuple[str, ...], layers: int | None = None
    ) -> list[str] | None:
        """A list of one of `known` for each of `layers`, if that is given; None where there is no
        such key."""
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self.wrong(key, f"a list of {' or '.join(known)}, one a layer, is needed")
        if layers is not None and len(value) != layers:
            said = f"{key} is a list of {len(value)} for {counted(layers, 'layer')}"
            raise self.error(f"{said}: write one each")
        for layer, word in enumerate(value):
            if word not in known:
                raise self.error(
                    f"{key} has {clip(word)} at layer {layer}: {' and '.join(known)} can be run"
                )
        return value


def is_number(value: object) -> bool:
    """Whether a value is a number, and no boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)
