"""Damaged checkpoints, of which no copy without indexers is made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .shards import INDEX, PATTERN
from .stripped import refused


def damage(model: Path, how: str) -> None:
    shard = model / "model-00002-of-00003.safetensors"
    data = shard.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    name = max((n for n in header if n != "__metadata__"), key=lambda n: header[n]["data_offsets"])
    begin, end = header[name]["data_offsets"]
    offsets = {
        "beyond the end": [begin, end + 1],
        "overlap": [begin - 1, end],
        "gap": [begin + 1, end],
        "backwards": [end, begin],
        "negative": [-1, end],
        "text": "0 1",
        "one": [begin],
        "fraction": [begin, float(end)],
    }
    if how in offsets:
        header[name]["data_offsets"] = offsets[how]
        text = json.dumps(header).encode()
        shard.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
    elif how == "cut short":
        shard.write_bytes(data[:-1])
    elif how == "longer":
        shard.write_bytes(data + b"x")
    elif how == "cut in the header":
        shard.write_bytes(data[:50])
    elif how == "empty":
        shard.write_bytes(b"")
    elif how == "no JSON":
        shard.write_bytes(data[:8] + b"x" + data[9:])
    elif how == "missing":
        shard.unlink()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("beyond the end", "its tensors take"),
        ("overlap", "begins at byte"),
        ("gap", "begins at byte"),
        ("backwards", "has data_offsets"),
        ("negative", "has data_offsets"),
        ("text", "has data_offsets '0 1'"),
        ("one", "has data_offsets"),
        ("fraction", "has data_offsets"),
        ("cut short", "damaged or cut short"),
        ("longer", "damaged or cut short"),
        ("cut in the header", "is no safetensors file, or cut short"),
        ("empty", "is no safetensors file, or cut short"),
        ("no JSON", "not valid JSON"),
        ("missing", "is missing: the download may be incomplete"),
    ],
)
def test_damaged_shards(sharded: Path, tmp_path: Path, how: str, said: str) -> None:
    """Also one that would only be linked."""
    damage(sharded, how)
    message = refused(sharded, PATTERN, tmp_path / "out")
    assert said in message and "model-00002-of-00003.safetensors" in message


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("{", "not valid JSON"),
        ("[]", "JSON object"),
        ("{}", "has no weight_map"),
        ('{"weight_map": []}', "has no weight_map"),
        ({"model.layers.0.extra": "../x"}, "a file name is wanted"),
        ({"model.layers.0.extra": 3}, "a file name is wanted"),
        ({"model.layers.0.extra": ""}, "is missing"),
        ({"model.layers.0.extra": "none"}, "none is missing"),
        ({"extra": "model-00002-of-00003.safetensors"}, "places extra in model-00002"),
    ],
)
def test_damaged_indices(
    sharded: Path, tmp_path: Path, index: str | dict[str, object], said: str
) -> None:
    if not isinstance(index, str):
        weight_map = json.loads((sharded / INDEX).read_text())["weight_map"] | index
        index = json.dumps({"weight_map": weight_map})
    (sharded / INDEX).write_text(index)
    assert said in refused(sharded, PATTERN, tmp_path / "out")


def test_models_without_weights_or_folder(sharded: Path, tmp_path: Path) -> None:
    assert "give the folder" in refused(sharded / "config.json", PATTERN, tmp_path / "out")
    (sharded / INDEX).unlink()
    assert "no weights" in refused(sharded, PATTERN, tmp_path / "out")
    assert "no such file" in refused(tmp_path / "absent", PATTERN, tmp_path / "out")
