"""Reading tensors by name from a folder of safetensors files."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from ixsearch.runtime.shards import CheckpointError, Entry, Shards

__all__ = ["Checkpoint", "CheckpointError"]

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "BF16": torch.bfloat16,
    "F16": torch.float16,
    "F8_E4M3": torch.float8_e4m3fn,
}


def _stamp(stat: os.stat_result) -> tuple[int, int]:
    """What tells that a file has been written: its size and the time, in ns."""
    return stat.st_size, stat.st_mtime_ns


class Checkpoint:
    """The tensors of a model folder, each read from its file when it is asked for.

    Nothing is mapped into memory: what is read is there once, and a file that changes later does
    not change it. From a file that has changed nothing more is read: what is read later (with
    offload, in every pass) would be another model's than what was computed before.

    Raises:
        CheckpointError: there are no weights. What else may be wrong, `WeightPlan` says.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shards = Shards.read(folder)
        self._seen = {path.name: _stamp(path.stat()) for path in self.shards.files}

    @property
    def files(self) -> list[Path]:
        return self.shards.files

    def __contains__(self, name: str) -> bool:
        return name in self.shards.entries

    def read(self, name: str, pinned: bool = False) -> torch.Tensor:
        """A tensor in host memory, as the file has it.

        Args:
            pinned: in page-locked memory, from which a copy to CUDA is fast.

        Raises:
            CheckpointError: the file is gone, cannot be read, or has changed.
        """
        try:
            return self._read(self.shards.entries[name], pinned)
        except OSError as error:
            where = self.folder / self.shards.entries[name].file
            raise CheckpointError(f"{where} cannot be read: {error.strerror or error}") from None

    def _read(self, entry: Entry, pinned: bool) -> torch.Tensor:
        data = torch.empty(entry.size, dtype=torch.uint8, pin_memory=pinned)
        rest = memoryview(data.numpy())
        with open(self.folder / entry.file, "rb", buffering=0) as file:
            file.seek(entry.begin)
            while rest:
                count = file.readinto(rest)
                if not count:
                    raise CheckpointError(f"{file.name} has become shorter while it was read")
                rest = rest[count:]
            if _stamp(os.fstat(file.fileno())) != self._seen[entry.file]:
                raise CheckpointError(
                    f"{file.name} has changed since the model was loaded: load it again, and start"
                    " again what rests on it"
                )
        return data.view(_DTYPES[entry.dtype]).view(entry.shape)
