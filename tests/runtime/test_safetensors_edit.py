"""Safetensors files with tensors taken out: the order and the alignment of the rest."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file

from ixsearch.runtime.safetensors_edit import copy_without, read_layout


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
