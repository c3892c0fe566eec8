"""Checkpoints without the indexers of S layers, read back by safetensors itself."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.patterns import (
    IxsearchError,
    ModelError,
    Pattern,
    PatternError,
    read_model_config,
)
from ixsearch.runtime import NativeEngine, safetensors_edit, strip_plan
from ixsearch.runtime import strip_indexers as module
from ixsearch.runtime.interface import Document, Request
from ixsearch.runtime.safetensors_edit import copy_without, read_layout
from ixsearch.runtime.strip_indexers import Stripped, strip_indexers

LAYERS = 6
PATTERN = Pattern("FSFFSS")
CONFIG = {
    "architectures": ["DeepseekV32ForCausalLM"],
    "model_type": "deepseek_v32",
    "num_hidden_layers": LAYERS,
    "index_topk": 12,
    "num_nextn_predict_layers": 1,
}
INDEX = "model.safetensors.index.json"
DTYPES = (torch.bfloat16, torch.float8_e4m3fn, torch.float32, torch.uint8, torch.int64, torch.bool)


def tensor(rng: random.Random, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Random bytes of a random shape, of no elements now and then."""
    dtype = dtype or rng.choice(DTYPES)
    shape = [rng.randrange(0, 6) for _ in range(rng.randrange(0, 3))]
    generator = torch.Generator().manual_seed(rng.randrange(1 << 30))
    count = torch.Size(shape).numel() * dtype.itemsize
    high = 2 if dtype == torch.bool else 256
    data = torch.randint(high, (count,), dtype=torch.uint8, generator=generator)
    return data.view(dtype).reshape(shape)


def indexer(layer: int) -> list[str]:
    prefix = f"model.layers.{layer}.self_attn.indexer."
    return [
        prefix + n for n in ("wq_b.weight", "wq_b.weight_scale_inv", "wk.weight", "k_norm.bias")
    ]


def tensors_of(rng: random.Random, owners: list[int]) -> dict[str, torch.Tensor]:
    """Of a checkpoint whose layers `owners` have an indexer; the MTP layer always has."""
    names = ["model.embed_tokens.weight", "model.norm.weight"]
    for layer in range(LAYERS + 1):
        names += [f"model.layers.{layer}.{n}" for n in ("self_attn.o_proj.weight", "mlp.gate")]
        names += indexer(layer) if layer in [*owners, LAYERS] else []
    return {name: tensor(rng) for name in names}


def save_shards(folder: Path, shards: list[dict[str, torch.Tensor]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    weight_map = {}
    for i, part in enumerate(shards):
        name = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        save_file(part, folder / name, metadata={"format": "pt", "é": "ü"})
        weight_map |= dict.fromkeys(part, name)
    size = sum(t.nbytes for part in shards for t in part.values())
    index = {"metadata": {"total_size": size, "by": "a test"}, "weight_map": weight_map}
    (folder / INDEX).write_text(json.dumps(index))
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Shards: all indexers of layers 0 to 2 and more; untouched; only an indexer of an S layer."""
    rng = random.Random(1)
    parts = tensors_of(rng, list(range(LAYERS)))
    alone = {name: parts.pop(name) for name in indexer(4)}
    plain = {n: parts.pop(n) for n in list(parts) if "mlp" in n or n in indexer(3)}
    folder = save_shards(tmp_path / "model", [parts, plain, alone])
    (folder / "tokenizer.json").write_text("{}")
    (folder / "code").mkdir()
    (folder / "code/model.py").write_text("pass\n")
    (folder / ".git").mkdir()
    (folder / ".git/HEAD").touch()
    (folder / "blob").write_text("linked\n")
    (folder / "README.md").symlink_to("blob")
    return folder


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    def flat(t: torch.Tensor) -> torch.Tensor:
        return t.reshape(-1).view(torch.uint8)

    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(flat(a), flat(b))


def all_tensors(folder: Path) -> dict[str, torch.Tensor]:
    return {n: t for f in folder.glob("*.safetensors") for n, t in load_file(f).items()}


def assert_stripped(original: Path, copy: Path, gone: set[str]) -> None:
    """Every other tensor is there, byte for byte, and the index says so."""
    before, after = all_tensors(original), all_tensors(copy)
    assert after.keys() == before.keys() - gone
    assert all(same(after[name], before[name]) for name in after)
    for file in copy.glob("*.safetensors"):
        with safe_open(file, "pt") as new, safe_open(original / file.name, "pt") as old:
            assert new.metadata() == old.metadata()
            order = [n for n in old.offset_keys() if n not in gone and before[n].numel()]
            assert [n for n in new.offset_keys() if before[n].numel()] == order
        assert int.from_bytes(file.read_bytes()[:8], "little") % 8 == 0
    if (original / INDEX).exists():
        old, new = (json.loads((f / INDEX).read_text()) for f in (original, copy))
        kept = {n: s for n, s in old["weight_map"].items() if n not in gone}
        assert list(new["weight_map"].items()) == list(kept.items())
        size = sum(t.nbytes for t in after.values())
        assert new["metadata"] == old["metadata"] | {"total_size": size}
        assert {f.name for f in copy.glob("*.safetensors")} == set(kept.values())


def refused(*args: object, kind: type[IxsearchError] = ModelError) -> str:
    """The message of a run that writes nothing, not even for a moment."""
    model, _, place = args
    before = sorted(os.listdir(place.parent)), sorted(model.rglob("*"))
    with pytest.raises(kind) as caught:
        strip_indexers(*args)
    assert (sorted(os.listdir(place.parent)), sorted(model.rglob("*"))) == before
    return str(caught.value)


def test_what_is_done(model: Path, tmp_path: Path) -> None:
    place = tmp_path / "new/out"
    said = strip_indexers(model, PATTERN, place)
    gone = {name for layer in (1, 4, 5) for name in indexer(layer)}
    assert_stripped(model, place, gone)
    saved = sum(t.nbytes for n, t in all_tensors(model).items() if n in gone)
    assert said == Stripped(1, 0, 1, 1, 12, saved, (1, 4, 5))
    names = sorted(p.relative_to(place).as_posix() for p in place.rglob("*") if p.is_file())
    shards = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2)]
    assert names == sorted(
        ["README.md", "blob", "code/model.py", "config.json", "tokenizer.json", INDEX, *shards]
    )
    assert read_model_config(place).default_pattern == PATTERN
    assert read_model_config(place).indexer_layers == PATTERN.full_layers
    assert os.listdir(place.parent) == ["out"]


def test_what_changes_is_new_and_what_does_not_is_linked(model: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    strip_indexers(model, PATTERN, place)
    for old in (p for p in model.rglob("*") if p.is_file() and ".git" not in p.parts):
        new = place / old.relative_to(model)
        if "00003-of" in old.name:
            assert not new.exists()
            continue
        linked = old.name.startswith("model-00002")
        assert (new.stat().st_ino == old.stat().st_ino) == linked
        assert new.stat().st_nlink == 1 + linked and not new.is_symlink()


def test_a_hub_cache_is_linked_to_its_blobs(model: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "hub/snapshots/abc"
    snapshot.mkdir(parents=True)
    blobs = tmp_path / "hub/blobs"
    shutil.move(model, blobs)
    for file in (p for p in blobs.iterdir() if p.is_file() and not p.is_symlink()):
        (snapshot / file.name).symlink_to(f"../../blobs/{file.name}")
    said = strip_indexers(snapshot, PATTERN, tmp_path / "out")
    assert said.shards_linked == 1
    name = "model-00002-of-00003.safetensors"
    assert (tmp_path / "out" / name).samefile(blobs / name)
    assert not any(p.is_symlink() for p in (tmp_path / "out").iterdir())


def test_folders_linked_in_a_circle(model: Path, tmp_path: Path) -> None:
    (model / "code/up").symlink_to("..")
    (model / "more").symlink_to("code")
    (model / "dangling").symlink_to("nowhere")
    strip_indexers(model, PATTERN, tmp_path / "out")
    assert (tmp_path / "out/more/model.py").exists()
    assert not (tmp_path / "out/code/up").exists()


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK])
def test_where_no_link_can_be_made_shards_are_copied(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "link", fail)
    said = strip_indexers(model, PATTERN, tmp_path / "out")
    assert (said.shards_linked, said.shards_copied) == (0, 1)
    assert_stripped(model, tmp_path / "out", {n for i in (1, 4, 5) for n in indexer(i)})


def test_large_other_files_are_linked(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SMALL", 5)
    monkeypatch.setattr(strip_plan, "SMALL", 5)
    strip_indexers(model, PATTERN, tmp_path / "out")
    assert (tmp_path / "out/code/model.py").samefile(model / "code/model.py")
    assert not (tmp_path / "out/tokenizer.json").samefile(model / "tokenizer.json")


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
    assert_stripped(model, tmp_path / "out", {n for i in shared for n in indexer(i)})
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
    assert_stripped(model, tmp_path / "out", {n for i in (1, 4, 5) for n in indexer(i)})
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


def test_indexers_that_the_index_does_not_name_go_too(model: Path, tmp_path: Path) -> None:
    """vLLM loads whatever a shard holds."""
    index = json.loads((model / INDEX).read_text())
    hidden = all_tensors(model)[indexer(5)[2]].nbytes
    del index["weight_map"][indexer(5)[2]]
    index["metadata"]["total_size"] -= hidden
    (model / INDEX).write_text(json.dumps(index))
    strip_indexers(model, PATTERN, tmp_path / "out")
    assert_stripped(model, tmp_path / "out", {n for i in (1, 4, 5) for n in indexer(i)})


def write_raw(path: Path, entries: list[tuple[str, str, list[int], bytes]]) -> None:
    """A safetensors file whose data lie in the order given."""
    header, at = {}, 0
    for name, dtype, shape, data in entries:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(e[3] for e in entries))


def test_the_order_of_the_data_stays(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    names = ["z", "gone", "b", "a"]
    write_raw(old, [(n, "U8", [8], bytes([ord(n[0])] * 8)) for n in names])
    copy_without(read_layout(old), {"gone"}, new)
    assert list(read_layout(new).spans) == ["z", "b", "a"]
    assert new.read_bytes().endswith(b"z" * 8 + b"b" * 8 + b"a" * 8)


def test_types_in_another_order_than_that_of_safetensors(tmp_path: Path) -> None:
    """Narrow ones first, and then an odd number of bytes taken out."""
    old, new = tmp_path / "old", tmp_path / "new"
    numbers = torch.arange(3, dtype=torch.float64)
    entries = [
        ("odd", "U8", [3], b"odd"),
        ("gone", "U8", [5], b"gone!"),
        ("wide", "F64", [3], numbers.numpy().tobytes()),
        ("half", "BF16", [2], b"\x00\x3f\x80\x3f"),
    ]
    write_raw(old, entries)
    copy_without(read_layout(old), {"gone"}, new)
    got = load_file(new)
    assert torch.equal(got["wide"], numbers)
    assert got["half"].tolist() == [0.5, 1.0] and bytes(got["odd"].tolist()) == b"odd"


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
def test_damaged_shards(model: Path, tmp_path: Path, how: str, said: str) -> None:
    """Also one that would only be linked."""
    damage(model, how)
    message = refused(model, PATTERN, tmp_path / "out")
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
    model: Path, tmp_path: Path, index: str | dict[str, object], said: str
) -> None:
    if not isinstance(index, str):
        weight_map = json.loads((model / INDEX).read_text())["weight_map"] | index
        index = json.dumps({"weight_map": weight_map})
    (model / INDEX).write_text(index)
    assert said in refused(model, PATTERN, tmp_path / "out")


def test_models_without_weights_or_folder(model: Path, tmp_path: Path) -> None:
    assert "give the folder" in refused(model / "config.json", PATTERN, tmp_path / "out")
    (model / INDEX).unlink()
    assert "no weights" in refused(model, PATTERN, tmp_path / "out")
    assert "no such file" in refused(tmp_path / "absent", PATTERN, tmp_path / "out")


def test_an_index_without_sizes(model: Path, tmp_path: Path) -> None:
    index = json.loads((model / INDEX).read_text())
    del index["metadata"]
    (model / INDEX).write_text(json.dumps(index))
    strip_indexers(model, PATTERN, tmp_path / "out")
    assert list(json.loads((tmp_path / "out" / INDEX).read_text())) == ["weight_map"]


def test_patterns_that_do_not_fit(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = refused(model, Pattern("FSFS"), out, kind=PatternError)
    assert "4 letters, the model 6 layers" in said
    said = refused(model, Pattern.all_full(LAYERS), out, kind=IxsearchError)
    assert "nothing is to strip" in said
    strip_indexers(model, PATTERN, out)
    said = refused(out, Pattern.all_full(LAYERS), tmp_path / "more", kind=PatternError)
    assert "F on layer 1, 4, 5" in said
    said = refused(out, PATTERN, tmp_path / "more", kind=IxsearchError)
    assert "nothing is to strip" in said


def test_what_is_stripped_can_be_stripped_more(model: Path, tmp_path: Path) -> None:
    strip_indexers(model, PATTERN, tmp_path / "out")
    said = strip_indexers(tmp_path / "out", Pattern("FSFSSS"), tmp_path / "more")
    assert said.layers == (3,)
    assert_stripped(model, tmp_path / "more", {n for i in (1, 3, 4, 5) for n in indexer(i)})


def test_places_that_are_refused(model: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(model)
    (tmp_path / "other").mkdir()
    for place in (model, model / "out", tmp_path / "link/code/x", tmp_path / "other/../model/x"):
        said = refused(model, PATTERN, place, kind=IxsearchError)
        assert "in the model's own folder: give another place" in said
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/file").touch()
    said = refused(model, PATTERN, tmp_path / "taken", kind=IxsearchError)
    assert "is there already" in said


def test_a_full_disk_is_seen_before_anything_is_written(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten = (model / "model-00001-of-00003.safetensors").stat().st_size
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(100))
    said = refused(model, PATTERN, tmp_path / "out", kind=IxsearchError)
    assert "the disk has 100 free: make room" in said
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(rewritten + 100))
    strip_indexers(model, PATTERN, tmp_path / "out")


def test_another_disk_must_hold_all_of_it(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = strip_plan.plan_strip(model, PATTERN)
    here = model.stat().st_dev
    linked = (model / "model-00002-of-00003.safetensors").stat().st_size
    assert plan.size(here + 1) - plan.size(here) == linked


@pytest.mark.parametrize("call", ["copy_file_range", "link", "fsync"])
def test_a_disk_that_fills_up_meanwhile_leaves_nothing(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    said = refused(model, PATTERN, tmp_path / "out", kind=IxsearchError)
    assert "out: No space left on device" in said and "Nothing was left there" in said


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("calls", [1, 4, 8])
def test_an_interrupted_run_leaves_nothing(
    model: Path, tmp_path: Path, error: type[BaseException], calls: int
) -> None:
    seen: list[str] = []

    def progress(name: str, done: int, total: int) -> None:
        seen.append(name)
        assert not (tmp_path / "out").exists()
        if len(seen) == calls:
            raise error

    with pytest.raises(error):
        strip_indexers(model, PATTERN, tmp_path / "out", progress)
    assert os.listdir(tmp_path) == ["model"] and len(seen) == calls


def test_a_shard_that_shrinks_while_it_is_copied(model: Path, tmp_path: Path) -> None:
    name = "model-00001-of-00003.safetensors"

    def progress(now: str, done: int, total: int) -> None:
        if now == name:
            os.truncate(model / name, 1000)

    with pytest.raises(ModelError, match="has become shorter"):
        strip_indexers(model, PATTERN, tmp_path / "out", progress)
    assert os.listdir(tmp_path) == ["model"]


KILLED = """
import os, signal, sys
from ixsearch.patterns import Pattern
from ixsearch.runtime.strip_indexers import strip_indexers

def progress(name, done, total):
    if name.startswith("model-00001") and done:
        os.kill(os.getpid(), signal.SIGKILL)

strip_indexers(sys.argv[1], Pattern(sys.argv[2]), sys.argv[3], progress)
"""


def test_a_killed_run_leaves_no_copy_and_the_next_one_tidies_up(
    model: Path, tmp_path: Path
) -> None:
    args = [sys.executable, "-c", KILLED, model, PATTERN.letters, tmp_path / "out"]
    assert subprocess.run(args, check=False).returncode == -signal.SIGKILL
    left = tmp_path / ".out.ixsearch-part"
    assert sorted(p.name for p in tmp_path.iterdir()) == [left.name, "model"]
    assert any((left / "new").iterdir())
    strip_indexers(model, PATTERN, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["model", "out"]
    assert_stripped(model, tmp_path / "out", {n for i in (1, 4, 5) for n in indexer(i)})


def test_no_torch_is_needed() -> None:
    code = "import ixsearch.runtime.strip_indexers, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_transformers_loads_the_copy_and_shares(tmp_path: Path) -> None:
    """No key is missing, none is left over, and it computes what the model does."""
    transformers = pytest.importorskip("transformers")
    from .oracle import Oracle, make_model, save

    model = make_model("glm_moe_dsa", seed=1)
    save(model, tmp_path / "model")
    strip_indexers(tmp_path / "model", PATTERN, tmp_path / "out")
    copy, said = transformers.GlmMoeDsaForCausalLM.from_pretrained(
        tmp_path / "out", output_loading_info=True, attn_implementation="eager"
    )
    assert not said["missing_keys"] and not said["unexpected_keys"]
    tokens = list(range(60))
    oracle = Oracle(model)
    oracle.set_pattern(PATTERN)
    with torch.no_grad():
        got = copy(torch.tensor([tokens])).logits[0]
    assert torch.equal(got, oracle.logits(tokens))


def test_the_bundled_model_scores_and_writes_the_same(tmp_path: Path) -> None:
    """But for the divergence: the baseline of the copy is the pattern itself."""
    pattern = Pattern("FFSSSFSSSFSSSFSS")
    strip_indexers(MODEL_FOLDER, pattern, tmp_path / "out")
    tokens = tuple(random.Random(0).choices(range(3, 397), k=90))
    scores, texts = [], []
    for folder in (MODEL_FOLDER, tmp_path / "out"):
        engine = NativeEngine.load(folder, device="cpu")
        scores.append(engine.score([Document("one", tokens, ((60, 90),))], [pattern])[0][0])
        engine.set_pattern(pattern)
        texts.append(engine.generate([Request(tokens, 4)]))
    assert scores[0].tokens == 30 and scores[0].divergence_sum > 0
    assert scores[1] == dataclasses.replace(scores[0], divergence_sum=0.0)
    assert texts[0] == texts[1]
    assert engine.describe().default_pattern == engine.describe().baseline == pattern
