"""Reading tensors by name from a folder of safetensors files."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from ixsearch.patterns import ModelError

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"


class CheckpointError(ModelError):
    """A checkpoint that is missing, damaged or not what its configuration says."""


class Checkpoint:
    """The tensors of a model folder: one `model.safetensors`, or shards and their index.

    Raises:
        CheckpointError: no weights, a shard is missing or cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._shards = {}
        self._shard_of: dict[str, str] = {}
        for shard, names in _listed_shards(folder).items():
            handle = self._open(shard)
            present = set(handle.keys())
            absent = sorted((names or present) - present)
            if absent:
                raise CheckpointError(
                    f"{folder / INDEX} places {', '.join(absent[:5])} in {shard}, which does not"
                    " have it: the index and the shards are of different checkpoints"
                )
            self._shard_of.update(dict.fromkeys(names or present, shard))

    def _open(self, shard: str):
        path = self.folder / shard
        if not path.is_file():
            raise CheckpointError(f"{path} is missing: the download may be incomplete")
        try:
            self._shards[shard] = safe_open(path, framework="pt")
        except (SafetensorError, OSError) as error:
            raise CheckpointError(
                f"{path} cannot be read ({error}): it may be truncated, fetch it again"
            ) from error
        return self._shards[shard]

    @property
    def files(self) -> list[Path]:
        return [self.folder / shard for shard in sorted(self._shards)]

    def __contains__(self, name: str) -> bool:
        return name in self._shard_of

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._handle(name).get_slice(name).get_shape())

    def dtype(self, name: str) -> str:
        """As safetensors spells it: BF16, F32 ..."""
        return self._handle(name).get_slice(name).get_dtype()

    def tensor(self, name: str, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return self._handle(name).get_tensor(name).to(device=device, dtype=dtype)

    def _handle(self, name: str):
        return self._shards[self._shard_of[name]]


def _listed_shards(folder: Path) -> dict[str, set[str] | None]:
    """File name -> the tensors its index promises; None: all that the file has."""
    index = folder / INDEX
    if not index.is_file():
        if not (folder / SINGLE).is_file():
            raise CheckpointError(f"{folder} has no {SINGLE} and no {INDEX}: no weights to load")
        return {SINGLE: None}
    try:
        weight_map = json.loads(index.read_text())["weight_map"]
        shards: dict[str, set[str] | None] = {}
        for name, shard in weight_map.items():
            if Path(shard).name != shard:
                raise ValueError(f"shard {shard!r} is not a plain file name")
            shards.setdefault(shard, set()).add(name)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{index} cannot be read ({error}): fetch it again") from error
    return shards
