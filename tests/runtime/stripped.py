"""A copy without indexers against its model, and what is said where none is made."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from ixsearch.patterns import IxsearchError, ModelError
from ixsearch.runtime.strip_indexers import strip_indexers

from .shards import INDEX


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
