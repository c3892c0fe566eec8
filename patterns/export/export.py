"""One pattern for one engine: the file that switches it on, and the command that serves it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ixsearch.patterns.counting import counted
from ixsearch.patterns.dialects import Dialect, model_values
from ixsearch.patterns.export.launch import LAUNCHES, Launch
from ixsearch.patterns.export.spelling import has_types, overrides_for
from ixsearch.patterns.pattern import Pattern
from ixsearch.patterns.pattern_file import PatternFile

_WHY_TYPES = (
    "A GLM config always has indexer_types, and this engine reads that first:"
    " index_topk_pattern alone would be ignored, silently. Both say the same pattern."
)


@dataclass(frozen=True)
class Export:
    """A pattern on its way to an engine.

    `config`: the model's config.json, or what is known of it. `source`: the name of the pattern
    file. `model`: what the commands serve. `notes`: lines at the head of a settings file.
    """

    dialect: Dialect
    pattern: Pattern
    config: Mapping[str, Any] = field(default_factory=dict)
    source: str = "pattern.yaml"
    model: str = "MODEL"
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, dialect: Dialect, file: PatternFile, source: str = "pattern.yaml", model: str = "MODEL"
    ) -> Export:
        """For the model that a pattern file names."""
        return cls(dialect, file.pattern, file.model.config(), source, model)

    @property
    def launch(self) -> Launch | None:
        """None: the engine is no server."""
        return LAUNCHES.get(self.dialect.engine)

    @property
    def can_share(self) -> bool:
        """Whether any setting makes this engine share indices for this model."""
        return self.dialect.shares(str(model_values(self.config).get("model_type", "")))

    @property
    def overrides(self) -> dict[str, Any]:
        """The keys that this engine reads: always a letter a layer, never a frequency."""
        return overrides_for(self.dialect, self.pattern.letters, self.config)

    def settings(self, name: str) -> str:
        """The text of a settings file called `name`; '' where the engine has no such file."""
        launch = self.launch
        if launch is None or not launch.yaml_key or not self.dialect.reads:
            return ""
        why = self._comment(_WHY_TYPES) if self._needs_types else ""
        return self._head(name) + self._comment(launch.note) + why + self._body(launch)

    def command(self, config: str | os.PathLike[str] = "") -> str:
        """The shell command that serves with a settings file, or without any file."""
        launch = self.launch
        if launch is None or not (launch.override_option or config):
            return ""
        argv = [self.model if word == "MODEL" else word for word in launch.argv]
        if config and launch.config_option:
            argv += [launch.config_option, str(config)]
        elif launch.override_option:
            argv += [launch.override_option, json.dumps(self.overrides)]
        return shlex.join(argv)

    @property
    def _needs_types(self) -> bool:
        return "indexer_types" in self.dialect.writes and has_types(self.config)

    def _body(self, launch: Launch) -> str:
        if launch.as_string:
            return f"{launch.yaml_key}: '{json.dumps(self.overrides)}'\n"
        import yaml

        text = yaml.dump({launch.yaml_key: self.overrides}, sort_keys=False, width=float("inf"))
        return text.replace(f": {self.pattern}\n", f': "{self.pattern}"\n')

    def _head(self, name: str) -> str:
        model = f"{counted(len(self.pattern), 'layer')}, {self.pattern.num_full} F"
        lines = (
            *self.notes,
            f"{self.dialect.name}: the pattern of {self.source} ({model}).",
            f"Use:  {self.command(name)}",
        )
        return "".join(map(self._comment, lines))

    @staticmethod
    def _comment(text: str) -> str:
        """A line that stays a comment, whatever a name holds."""
        return "# " + "".join(c if c.isprintable() else "?" for c in text) + "\n"
