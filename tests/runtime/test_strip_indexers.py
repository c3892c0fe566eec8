"""Checkpoints without the indexers of S layers, read back by safetensors itself."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ixsearch.patterns import IxsearchError, Pattern, read_model_config
from ixsearch.runtime import safetensors_edit
from ixsearch.runtime.strip_indexers import Stripped, strip_indexers

from .shards import CONFIG, INDEX, LAYERS, PATTERN, indexer, indexers, save_shards, tensors_of
from .stripped import all_tensors, assert_stripped, refused


def test_what_is_done(sharded: Path, tmp_path: Path) -> None:
    place = tmp_path / "new/out"
    said = strip_indexers(sharded, PATTERN, place)
    gone = indexers(1, 4, 5)
    assert_stripped(sharded, place, gone)
    saved = sum(t.nbytes for n, t in all_tensors(sharded).items() if n in gone)
    assert said == Stripped(1, 0, 1, 1, 12, saved, (1, 4, 5))
    names = sorted(p.relative_to(place).as_posix() for p in place.rglob("*") if p.is_file())
    shards = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2)]
    assert names == sorted(
        ["README.md", "blob", "code/model.py", "config.json", "tokenizer.json", INDEX, *shards]
    )
    assert read_model_config(place).default_pattern == PATTERN
    assert read_model_config(place).indexer_layers == PATTERN.full_layers
    assert os.listdir(place.parent) == ["out"]


@pytest.mark.parametrize("way", ["in the kernel", "by hand", "where the kernel refuses"])
@pytest.mark.parametrize("seed", range(12))
def test_any_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, way: str
) -> None:
    """Random patterns, owners, types, shapes and shards; chunks of a few bytes."""
    rng = random.Random(seed)
    monkeypatch.setattr(safetensors_edit, "CHUNK", rng.choice([1, 7, 1 << 20]))
    if way == "by hand":
        monkeypatch.delattr(os, "copy_file_range", raising=False)
    elif way == "where the kernel refuses":
        monkeypatch.setattr(os, "copy_file_range", refuse)
    owners = sorted({0, *rng.sample(range(LAYERS), 3)})
    full = sorted({0, *rng.sample(owners, rng.randrange(len(owners)))})
    parts: list[dict[str, torch.Tensor]] = [{} for _ in range(rng.randrange(1, 9))]
    for name, value in tensors_of(rng, owners).items():
        rng.choice(parts)[name] = value
    model = save_shards(tmp_path / "model", [part for part in parts if part])
    pattern = Pattern.from_full(LAYERS, full)
    shared = tuple(i for i in owners if i not in full)
    if not shared:
        said = refused(model, pattern, tmp_path / "out", kind=IxsearchError)
        assert "nothing is to strip" in said
        return
    done: list[tuple[int, int]] = []
    said = strip_indexers(model, pattern, tmp_path / "out", lambda _, *now: done.append(now))
    assert_stripped(model, tmp_path / "out", indexers(*shared))
    assert said.layers == shared and said.tensors_dropped == 4 * len(shared)
    assert done == sorted(done) and len({total for _, total in done}) == 1
    assert not done or done[-1][0] == done[-1][1]


def refuse(*_: object) -> int:
    raise OSError(errno.EXDEV, "Invalid cross-device link")


def test_a_single_file_has_no_index(tmp_path: Path) -> None:
    model = tmp_path / "model"
    save_shards(model, [tensors_of(random.Random(3), list(range(LAYERS)))])
    (model / INDEX).unlink()
    (model / "model-00001-of-00001.safetensors").rename(model / "model.safetensors")
    said = strip_indexers(model, PATTERN, tmp_path / "out")
    assert (said.shards_rewritten, said.tensors_dropped) == (1, 12)
    assert_stripped(model, tmp_path / "out", indexers(1, 4, 5))
    assert sorted(os.listdir(tmp_path / "out")) == ["config.json", "model.safetensors"]


def test_a_language_model_within_another(tmp_path: Path) -> None:
    tensors = tensors_of(random.Random(4), list(range(LAYERS)))
    model = save_shards(
        tmp_path / "model", [{f"language_model.{n}": t for n, t in tensors.items()}]
    )
    outer = {"architectures": CONFIG["architectures"], "model_type": "vl", "text_config": CONFIG}
    (model / "config.json").write_text(json.dumps(outer))
    assert strip_indexers(model, PATTERN, tmp_path / "out").layers == (1, 4, 5)
    gone = {f"language_model.{n}" for i in (1, 4, 5) for n in indexer(i)}
    assert_stripped(model, tmp_path / "out", gone)
    said = json.loads((tmp_path / "out/config.json").read_text())
    assert said["text_config"]["index_topk_pattern"] == PATTERN.letters
    assert said.keys() == outer.keys()


def test_indexers_that_the_index_does_not_name_go_too(sharded: Path, tmp_path: Path) -> None:
    """vLLM loads whatever a shard holds."""
    index = json.loads((sharded / INDEX).read_text())
    hidden = all_tensors(sharded)[indexer(5)[2]].nbytes
    del index["weight_map"][indexer(5)[2]]
    index["metadata"]["total_size"] -= hidden
    (sharded / INDEX).write_text(json.dumps(index))
    strip_indexers(sharded, PATTERN, tmp_path / "out")
    assert_stripped(sharded, tmp_path / "out", indexers(1, 4, 5))


def test_an_index_without_sizes(sharded: Path, tmp_path: Path) -> None:
    index = json.loads((sharded / INDEX).read_text())
    del index["metadata"]
    (sharded / INDEX).write_text(json.dumps(index))
    strip_indexers(sharded, PATTERN, tmp_path / "out")
    assert list(json.loads((tmp_path / "out" / INDEX).read_text())) == ["weight_map"]


def test_what_is_stripped_can_be_stripped_more(sharded: Path, tmp_path: Path) -> None:
    strip_indexers(sharded, PATTERN, tmp_path / "out")
    said = strip_indexers(tmp_path / "out", Pattern("FSFSSS"), tmp_path / "more")
    assert said.layers == (3,)
    assert_stripped(sharded, tmp_path / "more", indexers(1, 3, 4, 5))


def test_no_torch_is_needed() -> None:
    code = "import ixsearch.runtime.strip_indexers, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
