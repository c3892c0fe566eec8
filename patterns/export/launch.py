"""How each engine is started, and where it takes overrides from: data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """The command line of an engine. MODEL in `argv` stands for the model."""

    engine: str
    argv: tuple[str, ...]
    config_option: str = ""
    """Takes a YAML file of settings; '': there is none."""
    override_option: str = ""
    """Takes a JSON object of overrides."""
    yaml_key: str = ""
    """The key of that file which carries the overrides."""
    as_string: bool = False
    """They are one JSON string there, not a mapping."""
    note: str = ""
    """A line of comment in the file."""


LAUNCHES = {
    launch.engine: launch
    for launch in (
        Launch(
            "vllm",
            ("vllm", "serve", "MODEL"),
            config_option="--config",
            override_option="--hf-overrides",
            yaml_key="hf-overrides",
            note="--hf-overrides on the command line replaces this mapping, it does not add to it.",
        ),
        Launch(
            "sglang",
            ("python", "-m", "sglang.launch_server", "--model-path", "MODEL"),
            config_option="--config",
            override_option="--json-model-override-args",
            yaml_key="json-model-override-args",
            as_string=True,
            note="One JSON string: up to 0.5.13 SGLang breaks a mapping.",
        ),
        Launch(
            "tensorrt-llm",
            ("trtllm-serve", "MODEL"),
            config_option="--extra_llm_api_options",
            yaml_key="model_kwargs",
            note="Or serve a copy of the checkpoint with the config.json beside this file.",
        ),
        Launch(
            "atom",
            ("python", "-m", "atom.entrypoints.openai_server", "--model", "MODEL"),
            override_option="--hf-overrides",
        ),
    )
}
"""transformers is no server: it takes the patched config.json."""
