"""How the pattern of an outcome is served: commands, and what keeps an engine from loading it."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from ixsearch.output.outcome import Outcome
from ixsearch.output.served_model import ServedModel
from ixsearch.patterns import Finding, ModelConfig, Options, Pattern, lint, read_anything
from ixsearch.patterns.dialects import Dialect, newest
from ixsearch.patterns.export import SERVERS, Export

BUNDLED_NOTE = (
    "The model that comes with ixsearch is for trying it: engines compute something else with it."
)
SPARE_INDEXERS = "IX406"
"""The finding that `ixsearch strip-indexers` mends."""


@dataclass(frozen=True)
class Setup:
    """One engine, the newest known here, set up for the pattern."""

    export: Export
    findings: tuple[Finding, ...] = ()
    """Of this engine with this checkpoint."""
    strip: str = ""
    """Makes the copy that the engine can load; '': it loads the model itself."""

    @property
    def name(self) -> str:
        return self.export.dialect.name

    def commands(self, settings: str | os.PathLike[str]) -> list[str]:
        """To be run one after the other. `settings`: the file of this engine."""
        return [*filter(None, [self.strip]), self.export.command(settings)]

    def said(self) -> list[str]:
        """The findings, a line each."""
        return [self._line(finding) for finding in self.findings]

    def notes(self) -> list[str]:
        """For the head of the settings file."""
        return [*self.said(), *([f"First: {self.strip}"] if self.strip else [])]

    def _line(self, finding: Finding) -> str:
        is_mended = self.strip and finding.code == SPARE_INDEXERS
        mend = "serve a copy without them" if is_mended else finding.mend
        told = ": ".join(part for part in (finding.message, mend) if part)
        return f"{finding.level} {finding.code}: {self.name}: {told}"


def setups(outcome: Outcome) -> tuple[Setup, ...]:
    """One a server; none where there is nothing to serve."""
    if outcome.pattern is None:
        return ()
    served, model = outcome.served_model, outcome.model
    config = {"model_type": model.model_type} if served is None else served.config.values
    name = model.name if served is None else served.name
    exports = [Export(newest(e), outcome.pattern, config, model=name) for e in SERVERS]
    return tuple(Setup(export) if served is None else _setup(export, served) for export in exports)


def settings_file(outcome: Outcome, setup: Setup) -> str:
    """Where the settings lie: from anywhere, if that is known."""
    inside = Path("overrides", f"{setup.export.dialect.engine}.yaml")
    return str(outcome.served_model.out / inside if outcome.served_model else inside)


def note(outcome: Outcome) -> str:
    """What is to be known before the model is served; '' for nothing."""
    return (
        BUNDLED_NOTE
        if outcome.pattern and outcome.served_model and outcome.served_model.is_bundled
        else ""
    )


def _setup(export: Export, served: ServedModel) -> Setup:
    findings = _findings(export.dialect, export.pattern, served.config)
    if all(finding.code != SPARE_INDEXERS for finding in findings):
        return Setup(export, findings)
    paths = (served.folder, served.out / "pattern.yaml", served.stripped)
    strip = shlex.join(["ixsearch", "strip-indexers", *map(str, paths)])
    return Setup(replace(export, model=str(served.stripped)), findings, strip)


def _findings(dialect: Dialect, pattern: Pattern, config: ModelConfig) -> tuple[Finding, ...]:
    """What `ixsearch export` says of an engine that was asked for."""
    found = lint(read_anything(pattern.letters), config, Options((dialect.spec,))).findings
    return tuple(f for f in found if dialect.name in f.engines and f.level != "info")
