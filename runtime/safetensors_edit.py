"""Copying a safetensors file without some of its tensors: bytes only, no tensor is made."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

from ixsearch.patterns.checkpoint_names import read_header
from ixsearch.patterns.errors import ModelError
from ixsearch.patterns.findings import clip

METADATA = "__metadata__"
CHUNK = 16 << 20
ALIGNMENT = 8
"""Data begin at a multiple of it, as in files that safetensors writes."""

Span = tuple[int, int]
"""First byte and the byte after the last; in a layout counted from where the data begin."""
Advance = Callable[[int], None]
"""Called with the number of bytes just written."""

_NOT_HERE = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}


@dataclass(frozen=True)
class Layout:
    """Where the tensors of a safetensors file lie."""

    path: Path
    data_start: int
    spans: Mapping[str, Span]
    """In the order of the data."""
    header: Mapping[str, Any] = field(repr=False)
    """As it stands in the file."""

    def bytes_of(self, names: Iterable[str]) -> int:
        return sum(end - begin for begin, end in map(self.spans.__getitem__, names))


def read_layout(path: Path) -> Layout:
    """Read where the tensors lie. Raises `ModelError` unless they fill the data without a gap."""
    layout = open_layout(path)
    check_filled(layout)
    return layout


def open_layout(path: Path) -> Layout:
    """As `read_layout`, of a file that may have been cut short."""
    header = read_header(path)
    with open(path, "rb") as file:
        data_start = 8 + int.from_bytes(file.read(8), "little")
    spans = {name: _span(path, name, entry) for name, entry in header.items() if name != METADATA}
    return Layout(path, data_start, dict(sorted(spans.items(), key=lambda s: s[1])), header)


def size_without(layout: Layout, dropped: Collection[str]) -> int:
    """Bytes of the file that `copy_without` writes."""
    kept = _kept(layout, dropped)
    return len(_header_bytes(layout, kept)) + layout.bytes_of(kept)


def copy_without(
    layout: Layout, dropped: Collection[str], target: Path, advance: Advance = lambda _: None
) -> None:
    """Write the new file `target`: what `layout` describes, without the `dropped` tensors.

    Raises `ModelError` when the file ends too early, `OSError` when `target` cannot be written.
    """
    kept = _kept(layout, dropped)
    with open(layout.path, "rb", buffering=0) as source, open(target, "xb", buffering=0) as file:
        advance(_write(file, _header_bytes(layout, kept)))
        for begin, end in _runs(kept.values()):
            span = (layout.data_start + begin, layout.data_start + end)
            copy_span(source, file, span, advance)


def copy_span(source: FileIO, target: FileIO, span: Span, advance: Advance) -> None:
    """Append the bytes of `span` to `target`. Both are open without a buffer."""
    left = span[1] - span[0]
    source.seek(span[0])
    while left:
        count = _copy_some(source, target, min(left, CHUNK))
        if not count:
            raise ModelError(f"{source.name} has become shorter while it was copied")
        left -= count
        advance(count)


def _copy_some(source: FileIO, target: FileIO, count: int) -> int:
    """Copy up to `count` bytes, inside the kernel (or the disk) where that is possible."""
    if hasattr(os, "copy_file_range"):
        try:
            if done := os.copy_file_range(source.fileno(), target.fileno(), count):
                return done
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
    return _write(target, source.read(count))


def _write(file: FileIO, data: bytes) -> int:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    return len(data)


def _span(path: Path, name: str, entry: object) -> Span:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    if (
        not isinstance(offsets, list)
        or [type(offset) for offset in offsets] != [int, int]
        or not 0 <= offsets[0] <= offsets[1]
    ):
        raise _damaged(path, f"tensor {clip(name)} has data_offsets {clip(offsets)}")
    return offsets[0], offsets[1]


def check_filled(layout: Layout) -> None:
    """The format knows no gaps: `layout` must have all of the file's data, each byte once.

    Raises `ModelError`.
    """
    size = os.stat(layout.path).st_size - layout.data_start
    at = 0
    for name, (begin, end) in layout.spans.items():
        if begin != at:
            what = f"tensor {clip(name)} begins at byte {begin:,} of the data"
            raise _damaged(layout.path, f"{what}, the one before it ends at {at:,}")
        at = end
    if at != size:
        raise _damaged(layout.path, f"its tensors take {at:,} bytes, the file has {size:,} of data")


def _damaged(path: Path, what: str) -> ModelError:
    return ModelError(f"{path}: {what}: the file is damaged or cut short, fetch it again")


def _kept(layout: Layout, dropped: Collection[str]) -> dict[str, Span]:
    """In the order of the data. That keeps the alignment of files that safetensors itself wrote:
    they have the widest types first.
    """
    return {name: span for name, span in layout.spans.items() if name not in dropped}


def _header_bytes(layout: Layout, kept: Mapping[str, Span]) -> bytes:
    at = 0
    offsets = {}
    for name, (begin, end) in kept.items():
        offsets[name] = [at, at + end - begin]
        at += end - begin
    header = {
        name: entry if name == METADATA else entry | {"data_offsets": offsets[name]}
        for name, entry in layout.header.items()
        if name == METADATA or name in offsets
    }
    data = json.dumps(header, separators=(",", ":")).encode()
    data += b" " * (-len(data) % ALIGNMENT)
    return len(data).to_bytes(8, "little") + data


def _runs(spans: Iterable[Span]) -> Iterator[Span]:
    """The spans, those that touch made one."""
    start = stop = 0
    for begin, end in spans:
        if begin != stop:
            yield start, stop
            start = begin
        stop = end
    yield start, stop
