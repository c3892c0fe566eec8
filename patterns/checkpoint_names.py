"""The names of a checkpoint's tensors, without reading a weight."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ixsearch.patterns.errors import ModelError
from ixsearch.patterns.json_file import parse_json_object, read_json_object

INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"
MAX_INDEX_BYTES = 256 << 20
MAX_HEADER_BYTES = 100_000_000
"""The limit of the safetensors format itself."""

_INDEXER = re.compile(r"(?:^|\.)layers\.(\d{1,6})\.self_attn\.indexer\.")


def tensor_names(folder: Path) -> list[str] | None:
    """The tensors of the checkpoint in `folder`, or None when there is none there.

    Reads the shard index, else the header of the single file. Raises `ModelError`.
    """
    if (index := folder / INDEX_NAME).exists():
        weight_map = read_json_object(index, MAX_INDEX_BYTES).get("weight_map")
        if not isinstance(weight_map, dict):
            raise ModelError(f"{index} has no weight_map: it is no index of a checkpoint")
        return list(weight_map)
    if (single := folder / SINGLE_NAME).exists():
        return [name for name in read_header(single) if name != "__metadata__"]
    return None


def layers_with_indexer(names: Iterable[str], num_layers: int) -> tuple[int, ...]:
    """The layers, MTP layers apart, that own a tensor of an indexer."""
    matches = (_INDEXER.search(name) for name in names)
    layers = {int(match[1]) for match in matches if match}
    return tuple(sorted(layer for layer in layers if layer < num_layers))


def read_header(path: Path) -> dict[str, object]:
    """The header of a safetensors file: eight bytes of length, little endian, then JSON."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or not 2 <= length <= min(MAX_HEADER_BYTES, size - 8):
                raise ModelError(
                    f"{path} is no safetensors file, or cut short: its {size:,} bytes begin with"
                    f" a header length of {length:,}"
                )
            data = file.read(length)
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from None
    return parse_json_object(data, f"{path} (header)")
