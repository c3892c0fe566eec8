"""What the files of a checkpoint hold, from their headers alone. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

from ixsearch.patterns.checkpoint_names import (
    INDEX_NAME,
    MAX_INDEX_BYTES,
    MAX_OBJECTS,
    SINGLE_NAME,
)
from ixsearch.patterns.errors import ModelError
from ixsearch.patterns.findings import clip
from ixsearch.patterns.json_file import read_json_object
from ixsearch.runtime.safetensors_edit import Layout, check_filled, open_layout

DTYPE_BYTES = {
    "F64": 8,
    "F32": 4,
    "BF16": 2,
    "F16": 2,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "F8_E8M0": 1,
    "I64": 8,
    "U64": 8,
    "I32": 4,
    "U32": 4,
    "I16": 2,
    "U16": 2,
    "I8": 1,
    "U8": 1,
    "BOOL": 1,
}
"""As safetensors spells them."""
OTHER_FORMATS = ("pytorch_model*.bin", "*.pth", "*.pt", "*.gguf")
"""Files of weights that are not read: what they hold is code, or in another layout."""


class CheckpointError(ModelError):
    """A checkpoint that is missing, damaged or not what its configuration says."""


@dataclass(frozen=True)
class Entry:
    """One tensor of a file."""

    file: str
    dtype: str
    """As safetensors spells it: BF16, F32 ..."""
    shape: tuple[int, ...]
    begin: int
    """Its first byte in the file."""
    size: int
    """Bytes."""


@dataclass(frozen=True)
class Problem:
    """Something wrong with a file or a tensor: `subject` and `what` make a sentence."""

    subject: str
    what: str
    of_file: bool = False


@dataclass
class Shards:
    """The tensors of a model folder: one `model.safetensors`, or shards and their index."""

    folder: Path
    files: list[Path] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    """Tensors that the index places where nothing can be read; `problems` says why."""
    problems: list[Problem] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> Shards:
        """Read the index and every header; what is wrong with a shard is among the problems.

        Raises:
            CheckpointError: there are no weights, or the index cannot be read.
        """
        shards = cls(folder)
        listed = _listed(folder)
        places = {name: shard for shard, names in listed.items() for name in names or ()}
        for shard, names in sorted(listed.items()):
            shards._add(shard, names, places)
        return shards

    def _add(self, shard: str, names: set[str] | None, places: Mapping[str, str]) -> None:
        if Path(shard).name != shard:
            self._fail(shard, "is not a plain file name, and the index names it", names)
            return
        path = self.folder / shard
        if not path.is_file():
            self._fail(shard, "is missing: the download may be incomplete", names)
            return
        self.files.append(path)
        try:
            layout = open_layout(path)
            found = {name: _entry(layout, name) for name in layout.spans}
        except ModelError as error:
            self._fail(shard, _about(path, error), names)
            return
        try:
            check_filled(layout)
        except ModelError as error:
            self._fail(shard, _about(path, error), None)
        self._place(shard, names, found, places)

    def _place(
        self,
        shard: str,
        names: set[str] | None,
        found: Mapping[str, Entry],
        places: Mapping[str, str],
    ) -> None:
        """Take what the index wants of a shard. `places`: each tensor's shard, by the index."""
        for name in sorted((names or set()) - found.keys()):
            what = f"is placed in {shard} by the index, and is not there"
            self.problems.append(Problem(name, what))
            self.unread.add(name)
        for name in sorted(set() if names is None else found.keys() - names):
            other = places.get(name)
            what = f"is in {shard}, and the index does not list it"
            if other is not None:
                what = f"is in {shard}, and the index places it in {other}: one of them is too much"
            self.problems.append(Problem(name, what))
        self.entries.update({n: e for n, e in found.items() if names is None or n in names})

    def _fail(self, shard: str, what: str, lost: set[str] | None) -> None:
        self.problems.append(Problem(str(self.folder / shard), what, of_file=True))
        self.unread |= lost or set()


def _about(path: Path, error: ModelError) -> str:
    """What is wrong with the file at `path`, without its name."""
    said = str(error).removeprefix(f"{path}")
    return said.lstrip() if said.startswith(" ") else f"cannot be used{said}"


def no_weights(folder: Path) -> str:
    """What there is in a folder that has neither the one file nor an index of shards."""
    missing = f"{folder} has no {SINGLE_NAME} and no {INDEX_NAME}"
    shards = _some(folder, "*.safetensors")
    if shards:
        return f"{missing}, which must say what is in {shards}: fetch the index too"
    other = _some(folder, *OTHER_FORMATS)
    if other:
        return f"{missing}, but {other}: convert the checkpoint to safetensors first"
    return f"{missing}: no weights to load"


def has_other_format(folder: Path) -> bool:
    """Whether there are weights, and all in files that are not read here."""
    return not _some(folder, "*.safetensors") and bool(_some(folder, *OTHER_FORMATS))


def _some(folder: Path, *wanted: str) -> str:
    """The first file of those names, and how many more there are."""
    names = sorted({path.name for each in wanted for path in folder.glob(each)})
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more}" if names else ""


def _listed(folder: Path) -> Mapping[str, set[str] | None]:
    """File name -> the tensors its index promises; None: all that the file has."""
    index = folder / INDEX_NAME
    if not index.is_file():
        if not (folder / SINGLE_NAME).is_file():
            raise CheckpointError(no_weights(folder))
        return {SINGLE_NAME: None}
    try:
        weight_map = read_json_object(index, MAX_INDEX_BYTES, MAX_OBJECTS).get("weight_map")
    except ModelError as error:
        raise CheckpointError(str(error), error.findings) from error
    if not isinstance(weight_map, dict) or not all(isinstance(f, str) for f in weight_map.values()):
        raise CheckpointError(f"{index} has no weight_map of names to files: fetch it again")
    shards: dict[str, set[str]] = {}
    for name, shard in weight_map.items():
        shards.setdefault(shard, set()).add(name)
    return shards


def _entry(layout: Layout, name: str) -> Entry:
    begin, end = layout.spans[name]
    said = layout.header[name]
    dtype, shape = said.get("dtype"), said.get("shape")
    whole = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not isinstance(dtype, str) or not whole:
        raise ModelError(
            f"{layout.path}: tensor {clip(name)} has dtype {clip(dtype)} and shape {clip(shape)}:"
            " the file is damaged, fetch it again"
        )
    width = DTYPE_BYTES.get(dtype)
    if width is not None and prod(shape) * width != end - begin:
        raise ModelError(
            f"{layout.path}: tensor {clip(name)} has {end - begin:,} bytes for {dtype} {shape}:"
            " the file is damaged, fetch it again"
        )
    return Entry(layout.path.name, dtype, tuple(shape), layout.data_start + begin, end - begin)
