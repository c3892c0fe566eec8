"""A copy of a checkpoint without the indexers that a pattern does not run."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.patterns.checkpoint_names import INDEX_NAME
from ixsearch.patterns.new_folder import new_folder
from ixsearch.runtime.safetensors_edit import copy_span, copy_without
from ixsearch.runtime.strip_plan import CONFIG_NAME, SMALL, StripPlan, check_place, plan_strip

Progress = Callable[[str, int, int], None]
"""Called with the file in work, the bytes written so far, and the bytes to write."""

_NO_LINKS = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOSYS, errno.EOPNOTSUPP}


@dataclass(frozen=True)
class Stripped:
    """What was done."""

    shards_linked: int
    """Files that share their bytes with the model's own."""
    shards_copied: int
    """Files as they were, where the file system could not link them."""
    shards_rewritten: int
    shards_dropped: int
    """Files that held nothing but tensors that were dropped."""
    tensors_dropped: int
    bytes_saved: int
    """The bytes of these tensors."""
    layers: tuple[int, ...]
    """The S layers that had an indexer."""


def strip_indexers(
    model: Path, pattern: Pattern, destination: Path, progress: Progress | None = None
) -> Stripped:
    """Write to `destination` the checkpoint in `model` without the indexers of S layers.

    Its `config.json` asks for the pattern. Shards that do not change are hard links: whoever edits
    one in place edits the model too. `destination` is complete or absent.

    Raises:
        PatternError: the pattern does not fit the model.
        ModelError: the checkpoint cannot be read, or is damaged.
        IxsearchError: nothing is to strip, or `destination` cannot be written.
    """
    try:
        plan = plan_strip(Path(model), pattern)
        check_place(plan, Path(destination))
    except OSError as error:
        where = error.filename or model
        raise IxsearchError(f"cannot read {where}: {error.strerror or error}") from error
    with new_folder(destination) as folder:
        return _Copy(plan, folder, progress).run()


class _Copy:
    """Writes what is planned into a folder."""

    def __init__(self, plan: StripPlan, folder: Path, progress: Progress | None) -> None:
        self.plan = plan
        self.folder = folder
        self.progress = progress
        self.total = plan.size(folder.stat().st_dev)
        self.done = 0
        self.name = ""

    def run(self) -> Stripped:
        for other in self.plan.others:
            self._other(other)
        dropped = [shard for shard in self.plan.shards if shard.becomes_empty]
        changed = [s for s in self.plan.shards if s.dropped and not s.becomes_empty]
        same = [shard for shard in self.plan.shards if not shard.dropped]
        linked = sum(self._link_or_copy(s.layout.path, self._begin(Path(s.name))) for s in same)
        for shard in changed:
            target = self._begin(Path(shard.name))
            copy_without(shard.layout, shard.dropped, target, self._advance)
        self._write_json(CONFIG_NAME, self.plan.config)
        if self.plan.index is not None:
            self._write_json(INDEX_NAME, _index_without(self.plan))
        return Stripped(
            shards_linked=linked,
            shards_copied=len(same) - linked,
            shards_rewritten=len(changed),
            shards_dropped=len(dropped),
            tensors_dropped=sum(len(shard.dropped) for shard in self.plan.shards),
            bytes_saved=sum(shard.saved for shard in self.plan.shards),
            layers=self.plan.layers,
        )

    def _other(self, other: Path) -> None:
        source, target = self.plan.model / other, self._begin(other)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.stat().st_size < SMALL:
            self._copy(source, target)
        else:
            self._link_or_copy(source, target)

    def _link_or_copy(self, source: Path, target: Path) -> bool:
        """Whether `target` became a link. The hub's cache is made of symbolic links: followed."""
        try:
            os.link(os.path.realpath(source), target)
            return True
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
        self._copy(source, target)
        return False

    def _copy(self, source: Path, target: Path) -> None:
        with open(source, "rb", buffering=0) as old, open(target, "xb", buffering=0) as new:
            copy_span(old, new, (0, os.fstat(old.fileno()).st_size), self._advance)

    def _write_json(self, name: str, value: Mapping[str, Any]) -> None:
        (self.folder / name).write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")

    def _begin(self, name: Path) -> Path:
        self.name = str(name)
        self._advance(0)
        return self.folder / name

    def _advance(self, count: int) -> None:
        self.done += count
        if self.progress:
            self.progress(self.name, self.done, max(self.total, self.done))


def _index_without(plan: StripPlan) -> dict[str, Any]:
    """The index without the dropped tensors, and its total size less by what it counted of them."""
    assert plan.index is not None
    index = dict(plan.index)
    sizes = {n: s.layout.bytes_of((n,)) for s in plan.shards for n in s.dropped}
    weight_map = index["weight_map"]
    index["weight_map"] = {name: s for name, s in weight_map.items() if name not in sizes}
    metadata = index.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("total_size"), int):
        counted = sum(size for name, size in sizes.items() if name in weight_map)
        index["metadata"] = metadata | {"total_size": metadata["total_size"] - counted}
    return index
