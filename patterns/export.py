"""The settings that switch a pattern on in a serving engine, as files and as shell commands."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ixsearch.patterns.atomic import write_text_atomic
from ixsearch.patterns.errors import IxsearchError
from ixsearch.patterns.pattern import Pattern
from ixsearch.patterns.pattern_file import PatternFile

VLLM_NAME = "vllm.yaml"
SGLANG_NAME = "sglang.yaml"
JSON_NAME = "hf_overrides.json"

GLM_ARCHITECTURE = "GlmMoeDsaForCausalLM"

_WHY_INDEXER_TYPES = """\
# A GLM config always has indexer_types, and SGLang 0.5.20 and later reads that first:
# index_topk_pattern alone would be ignored there, silently. Both say the same pattern.
"""


@dataclass(frozen=True)
class Export:
    """A pattern on its way to an engine.

    `source` is the name of the pattern file, `model` what the commands serve.
    """

    pattern: Pattern
    architecture: str
    source: str = "pattern.yaml"
    model: str = "MODEL"

    @classmethod
    def of(cls, file: PatternFile, source: str = "pattern.yaml", model: str = "MODEL") -> Export:
        return cls(file.pattern, file.model.architecture, source, model)

    @property
    def is_glm(self) -> bool:
        return self.architecture == GLM_ARCHITECTURE

    def vllm_overrides(self) -> dict[str, Any]:
        """vLLM's `hf-overrides`. vLLM 0.22 needs the flag; later ones look at the pattern alone."""
        return {"use_index_cache": True, "index_topk_pattern": self.pattern.letters}

    def sglang_overrides(self) -> dict[str, Any]:
        """SGLang's `json-model-override-args`."""
        overrides: dict[str, Any] = {"index_topk_pattern": self.pattern.letters}
        if self.is_glm:
            overrides["indexer_types"] = self.pattern.to_indexer_types()
        return overrides

    def hf_overrides(self) -> dict[str, Any]:
        """The keys of all engines together, for those that take a JSON object."""
        return self.vllm_overrides() | self.sglang_overrides()

    def vllm_yaml(self) -> str:
        """A file for `vllm serve MODEL --config FILE`."""
        return (
            self._head("vLLM", self.vllm_command(VLLM_NAME))
            + "# --hf-overrides on the command line replaces this mapping, it does not add to it.\n"
            + "hf-overrides:\n"
            + "  use_index_cache: true\n"
            + f'  index_topk_pattern: "{self.pattern}"\n'
        )

    def sglang_yaml(self) -> str:
        """A file for SGLang's `--config`. One quoted JSON string: older parsers break a mapping."""
        return (
            self._head("SGLang", self.sglang_command(SGLANG_NAME))
            + (_WHY_INDEXER_TYPES if self.is_glm else "")
            + f"json-model-override-args: '{json.dumps(self.sglang_overrides())}'\n"
        )

    def hf_overrides_json(self) -> str:
        return json.dumps(self.hf_overrides(), indent=2) + "\n"

    def vllm_command(self, config: str | os.PathLike[str]) -> str:
        """Shell command with a config file; vLLM knows `--config` only as a word of its own."""
        return shlex.join(["vllm", "serve", self.model, "--config", str(config)])

    def vllm_inline_command(self) -> str:
        """Shell command that needs no file."""
        overrides = json.dumps(self.vllm_overrides())
        return shlex.join(["vllm", "serve", self.model, "--hf-overrides", overrides])

    def sglang_command(self, config: str | os.PathLike[str]) -> str:
        return shlex.join([*self._launch_sglang(), "--config", str(config)])

    def sglang_inline_command(self) -> str:
        overrides = json.dumps(self.sglang_overrides())
        return shlex.join([*self._launch_sglang(), "--json-model-override-args", overrides])

    def _launch_sglang(self) -> list[str]:
        return ["python", "-m", "sglang.launch_server", "--model-path", self.model]

    def _head(self, engine: str, command: str) -> str:
        model = f"{self.architecture}, {len(self.pattern)} layers"
        return (
            f"# {engine} settings for the pattern of {_one_line(self.source)}"
            f" ({_one_line(model)}; {self.pattern.num_full} F).\n"
            f"# Use:  {_one_line(command)}\n"
        )


def write_overrides(
    folder: str | os.PathLike[str],
    file: PatternFile,
    source: str = "pattern.yaml",
    model: str = "MODEL",
) -> list[Path]:
    """Write the settings for every engine into `folder`, which is made when missing."""
    export = Export.of(file, source, model)
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise IxsearchError(f"cannot make the folder {folder}: {error.strerror}") from error
    return [
        write_text_atomic(folder / VLLM_NAME, export.vllm_yaml()),
        write_text_atomic(folder / SGLANG_NAME, export.sglang_yaml()),
        write_text_atomic(folder / JSON_NAME, export.hf_overrides_json()),
    ]


def _one_line(text: str) -> str:
    """Text that stays within a comment, whatever a name holds."""
    return "".join(c if c.isprintable() else "?" for c in text)
