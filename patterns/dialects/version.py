"""`vllm==0.33.0`: which engine, of which version, is meant."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from ixsearch.patterns.errors import IxsearchError


class EngineError(IxsearchError):
    """An engine, or a version of it, that is not in the table, or is not spelled as one."""


@dataclass(frozen=True)
class EngineSpec:
    """An engine as asked for; `version` None: any."""

    engine: str
    version: Version | None = None

    def __str__(self) -> str:
        return self.engine if self.version is None else f"{self.engine}=={self.version}"

    def within(self, versions: str) -> bool:
        """Whether a range holds this version; releases count, not their candidates or builds."""
        if self.version is None or not versions:
            return self.version is None
        return SpecifierSet(versions).contains(Version(self.version.base_version))

    def is_after(self, newest: str) -> bool:
        """Whether this version is newer than `newest`; never for what has no version."""
        try:
            read = Version(newest)
        except InvalidVersion:
            return False
        return self.version is not None and self.version.release > read.release


_ALIASES = {"trtllm": "tensorrt-llm", "tensorrt_llm": "tensorrt-llm", "hf": "transformers"}


def parse_engine(text: str) -> EngineSpec:
    """Read `NAME` or `NAME==VERSION`. Raises `EngineError`."""
    name, separator, version = text.strip().partition("==")
    name = name.strip().lower()
    if not name or (separator and not version.strip()) or any(c in name for c in "<>=!~ "):
        raise EngineError(f"{text!r} is no engine: write NAME==VERSION, as vllm==0.33.0")
    name = _ALIASES.get(name, name)
    if not separator:
        return EngineSpec(name)
    try:
        return EngineSpec(name, Version(version.strip()))
    except InvalidVersion:
        message = f"{version.strip()!r} is no version of {name}: write it as in {name}==0.33.0"
        raise EngineError(message) from None
