"""Models of many layers or tensors, and checkpoints made to hurt: little time and memory."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from .good_files import CONFIG, LETTERS, header
from .large_json import filled
from .usage import took_little


@pytest.mark.slow
def test_large_models_take_little(tmp_path: Path) -> None:
    """What makes a large file as a pattern, makes one as a model."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": 10**5}))
    for letters in ("FFSS", "F" * 100_000, "F" + "S" * 99_999):
        took_little(tmp_path, [letters, "--model=config.json", "--pp=7"])


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("index", 400_000), ("header", 100_000)])
def test_a_checkpoint_of_many_tensors(tmp_path: Path, kind: str, count: int) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    names = [f"model.layers.{i % 8}.self_attn.indexer.experts.{i:07}.weight" for i in range(count)]
    if kind == "index":
        index = json.dumps(
            {"weight_map": dict.fromkeys(names, "model-00001-of-000163.safetensors")}
        )
        assert len(index) > 36_000_000
        (tmp_path / "model.safetensors.index.json").write_text(index)
    else:
        (tmp_path / "model.safetensors").write_bytes(header(names))
    for arguments in (["."], [LETTERS, "--model=."]):
        said = took_little(tmp_path, arguments)
        assert said["model"]["indexer_layers"] == list(range(8))


@pytest.mark.slow
@pytest.mark.parametrize("part", ["{}", '{"":[]}', "[", '"k"'])
@pytest.mark.parametrize("kind", ["index", "header"])
def test_a_hostile_checkpoint_takes_little(tmp_path: Path, kind: str, part: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    text = filled('{"weight_map":[', part, "]}", 90_000_000)
    if kind == "index":
        (tmp_path / "model.safetensors.index.json").write_text(text)
    else:
        data = struct.pack("<Q", len(text)) + text.encode()
        (tmp_path / "model.safetensors").write_bytes(data)
    took_little(tmp_path, ["."])
