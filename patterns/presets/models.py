"""Models known by name: what their config.json says, and which layers have an indexer."""

from __future__ import annotations

import json
from pathlib import Path

from ixsearch.patterns.errors import ModelError
from ixsearch.patterns.model_config import ModelConfig

PRESETS = ("deepseek-v3.2", "glm-5", "glm-5.1", "glm-5.2")


def preset(name: str) -> ModelConfig:
    """The model of that name, without weights. Raises `ModelError`.

    It has no hash of a configuration: a preset holds the keys that matter here, not all of them.
    """
    if name not in PRESETS:
        raise ModelError(f"no preset {name!r}: known are {', '.join(PRESETS)}")
    data = json.loads(Path(__file__).with_name(f"{name}.json").read_text(encoding="utf-8"))
    config = data["config"]
    return ModelConfig(
        source=f"preset {name}",
        architecture=config["architectures"][0],
        model_type=config["model_type"],
        num_hidden_layers=config["num_hidden_layers"],
        index_topk=config["index_topk"],
        config_hash="",
        indexer_layers=tuple(data["indexer_layers"]),
        values=config,
        num_mtp_layers=config["num_nextn_predict_layers"],
    )
