"""The names of a checkpoint's tensors, without reading a weight."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from ixsearch.patterns.errors import ModelError, PatternError
from ixsearch.patterns.json_file import parse_json_object, read_json_object
from ixsearch.patterns.text_file import open_regular

INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"
MAX_INDEX_BYTES = 64 << 20
"""The index of DeepSeek-V3.2 takes 12 MB."""
MAX_HEADER_BYTES = 32 << 20
MAX_OBJECTS = 100
"""An index is a mapping of names in a mapping; more objects are no index, and fill the memory."""

_INDEXER = re.compile(r"(?:^|\.)layers\.(\d{1,6})\.self_attn\.indexer\.")


def tensor_names(folder: Path) -> list[str] | None:
    """The tensors of the checkpoint in `folder`, or None when there is none there.

    Reads the shard index, else the header of the single file. Raises `ModelError`.
    """
    if os.path.exists(index := folder / INDEX_NAME):
        weight_map = read_json_object(index, MAX_INDEX_BYTES, MAX_OBJECTS).get("weight_map")
        if not isinstance(weight_map, dict):
            raise ModelError(
                f"{index} has no weight_map: it is no index of a checkpoint; fetch it again"
            )
        return list(weight_map)
    if os.path.exists(single := folder / SINGLE_NAME):
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
        with open_regular(path) as file:
            size = file.seek(0, 2)
            file.seek(0)
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or not 2 <= length <= min(MAX_HEADER_BYTES, size - 8):
                raise ModelError(
                    f"{path} is no safetensors file, or cut short: its {size:,} bytes begin with"
                    f" a header length of {length:,}; fetch it again"
                )
            data = file.read(length)
    except PatternError as error:
        raise ModelError.of(error.findings) from None
    except OSError as error:
        message = f"cannot read {path}: {error.strerror or error}"
        raise ModelError(f"{message}; check that you may read it") from None
    try:
        return parse_json_object(data.decode(), f"{path} (header)")
    except UnicodeDecodeError:
        raise ModelError(
            f"{path} is no safetensors file: its header is not UTF-8; fetch it again"
        ) from None
