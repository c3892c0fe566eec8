"""Typed values out of a parsed `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ixsearch.patterns import ModelError


class ConfigError(ModelError):
    """A configuration that this runtime cannot run."""


class Values:
    """The keys of one JSON object; errors name the key and the file."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self.data = data
        self.where = where

    def error(self, message: str) -> ConfigError:
        return ConfigError(f"{self.where}: {message}")

    def size(self, key: str) -> int:
        value = self.data.get(key)
        if value is None:
            raise self.error(f"{key} is missing")
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.error(f"{key} is {value!r}: a whole number above 0 is needed")
        return value

    def number(self, key: str, default: float) -> float:
        value = self.data.get(key)
        if value is None:
            return default
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.error(f"{key} is {value!r}: a number is needed")
        return float(value)
