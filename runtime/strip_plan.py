"""What stripping a checkpoint of indexers will do, found out before anything is written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ixsearch.patterns import (
    IxsearchError,
    ModelError,
    Pattern,
    PatternError,
    check_for_model,
    read_model_config,
)
from ixsearch.patterns.checkpoint_names import (
    INDEX_NAME,
    MAX_INDEX_BYTES,
    SINGLE_NAME,
    layers_with_indexer,
)
from ixsearch.patterns.config_patch import patched_config
from ixsearch.patterns.findings import clip
from ixsearch.patterns.json_file import read_json_object
from ixsearch.runtime.safetensors_edit import Layout, read_layout, size_without

CONFIG_NAME = "config.json"
SMALL = 64 << 20
"""Files below it are copied, so that they can be edited; larger ones are weights of some kind."""
LEFT_OUT = (".git", ".cache")


@dataclass(frozen=True)
class Shard:
    """A weights file, and what of it is left out."""

    layout: Layout
    dropped: Mapping[str, int]
    """The tensors to leave out, and their layers."""

    @property
    def name(self) -> str:
        return self.layout.path.name

    @property
    def saved(self) -> int:
        return self.layout.bytes_of(self.dropped)

    @property
    def becomes_empty(self) -> bool:
        return len(self.dropped) == len(self.layout.spans) > 0


@dataclass(frozen=True)
class StripPlan:
    """All that is to do, found out before anything is written."""

    model: Path
    config: Mapping[str, Any]
    index: Mapping[str, Any] | None
    """None: the checkpoint is one file."""
    shards: tuple[Shard, ...]
    others: tuple[Path, ...]
    """The other files, relative to the model."""

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(sorted({i for shard in self.shards for i in shard.dropped.values()}))

    def size(self, device: int) -> int:
        """Bytes to write in a folder on that device."""
        total = 0
        for shard in self.shards:
            if shard.dropped and not shard.becomes_empty:
                total += size_without(shard.layout, shard.dropped)
            elif not shard.dropped:
                total += _size_unless_linked(shard.layout.path, device)
        for path in (self.model / other for other in self.others):
            small = path.stat().st_size < SMALL
            total += path.stat().st_size if small else _size_unless_linked(path, device)
        return total


def _size_unless_linked(path: Path, device: int) -> int:
    found = path.stat()
    return 0 if found.st_dev == device else found.st_size


def plan_strip(model: Path, pattern: Pattern) -> StripPlan:
    """Read and check everything. Raises `IxsearchError`."""
    config = read_model_config(model)
    if not model.is_dir():
        raise ModelError(f"{model} is a file: give the folder of the checkpoint")
    findings = check_for_model(pattern.letters, config)
    if errors := tuple(f for f in findings if f.level == "error"):
        raise PatternError.of(errors)
    index = None
    if (model / INDEX_NAME).exists():
        index = read_json_object(model / INDEX_NAME, MAX_INDEX_BYTES)
    shards = tuple(
        _shard(model / name, promised, pattern) for name, promised in _listed(model, index).items()
    )
    taken = {INDEX_NAME, CONFIG_NAME, *(shard.name for shard in shards)}
    others = tuple(path for path in _files(model) if str(path) not in taken)
    plan = StripPlan(model, patched_config(config.values, pattern), index, shards, others)
    if not plan.layers:
        raise IxsearchError(
            f"{model}: no S layer of the pattern has indexer weights, so nothing is to strip:"
            " serve the model itself with the pattern"
        )
    return plan


def _listed(model: Path, index: Mapping[str, Any] | None) -> dict[str, set[str]]:
    """Each shard, and the tensors that the index promises of it."""
    if index is None:
        if not (model / SINGLE_NAME).exists():
            raise ModelError(f"{model} has no {SINGLE_NAME} and no {INDEX_NAME}: no weights")
        return {SINGLE_NAME: set()}
    listed: dict[str, set[str]] = {}
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict):
        raise ModelError(f"{model / INDEX_NAME} has no weight_map: it is no index of a checkpoint")
    for name, shard in weight_map.items():
        if not isinstance(shard, str) or Path(shard).name != shard:
            raise ModelError(
                f"{model / INDEX_NAME} places {clip(name)} in {clip(shard)}: a file name is wanted"
            )
        listed.setdefault(shard, set()).add(name)
    return listed


def _shard(path: Path, promised: set[str], pattern: Pattern) -> Shard:
    if not path.is_file():
        raise ModelError(f"{path} is missing: the download may be incomplete")
    layout = read_layout(path)
    if absent := sorted(promised - layout.spans.keys()):
        raise ModelError(
            f"{path.parent / INDEX_NAME} places {', '.join(absent[:5])} in {path.name}, which does"
            " not have it: the index and the shards are of different checkpoints"
        )
    # By what the file has, not by what the index says of it: engines load all that is there.
    owner = {name: layers_with_indexer((name,), len(pattern)) for name in layout.spans}
    shared = {name: i[0] for name, i in owner.items() if i and not pattern.is_full(i[0])}
    return Shard(layout, shared)


def _files(folder: Path, inside: Path = Path(), above: tuple[str, ...] = ()) -> Iterator[Path]:
    """Regular files below `folder`, relative to it. Links are followed, but not in a circle."""
    above = (*above, os.path.realpath(folder / inside))
    for name in sorted(os.listdir(folder / inside)):
        path = folder / inside / name
        if name in LEFT_OUT or os.path.realpath(path) in above:
            continue
        if path.is_dir():
            yield from _files(folder, inside / name, above)
        elif path.is_file():
            yield inside / name


def check_place(plan: StripPlan, destination: Path) -> None:
    """Whether the copy may and can be where it shall be."""
    place = Path(os.path.realpath(destination))
    if place.is_relative_to(os.path.realpath(plan.model)):
        raise IxsearchError(f"{destination} is in the model's own folder: give another place")
    disk = next(p for p in (place, *place.parents) if p.exists())
    needed, free = plan.size(disk.stat().st_dev), shutil.disk_usage(disk).free
    if needed > free:
        raise IxsearchError(
            f"{destination} needs {needed:,} bytes, the disk has {free:,} free: make room, or give"
            " a place on the model's own disk, where shards that do not change take none"
        )
