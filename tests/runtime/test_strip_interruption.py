"""A run that ends while it writes a copy without indexers: no copy is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ixsearch.patterns import ModelError
from ixsearch.runtime.strip_indexers import strip_indexers

from .shards import PATTERN, indexers
from .stripped import assert_stripped


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("calls", [1, 4, 8])
def test_an_interrupted_run_leaves_nothing(
    sharded: Path, tmp_path: Path, error: type[BaseException], calls: int
) -> None:
    seen: list[str] = []

    def progress(name: str, done: int, total: int) -> None:
        seen.append(name)
        assert not (tmp_path / "out").exists()
        if len(seen) == calls:
            raise error

    with pytest.raises(error):
        strip_indexers(sharded, PATTERN, tmp_path / "out", progress)
    assert os.listdir(tmp_path) == ["model"] and len(seen) == calls


def test_a_shard_that_shrinks_while_it_is_copied(sharded: Path, tmp_path: Path) -> None:
    name = "model-00001-of-00003.safetensors"

    def progress(now: str, done: int, total: int) -> None:
        if now == name:
            os.truncate(sharded / name, 1000)

    with pytest.raises(ModelError, match="has become shorter"):
        strip_indexers(sharded, PATTERN, tmp_path / "out", progress)
    assert os.listdir(tmp_path) == ["model"]


KILLED = """
import os, signal, sys
from ixsearch.patterns import Pattern
from ixsearch.runtime.strip_indexers import strip_indexers

def progress(name, done, total):
    if name.startswith("model-00001") and done:
        os.kill(os.getpid(), signal.SIGKILL)

strip_indexers(sys.argv[1], Pattern(sys.argv[2]), sys.argv[3], progress)
"""


def test_a_killed_run_leaves_no_copy_and_the_next_one_tidies_up(
    sharded: Path, tmp_path: Path
) -> None:
    args = [sys.executable, "-c", KILLED, sharded, PATTERN.letters, tmp_path / "out"]
    assert subprocess.run(args, check=False).returncode == -signal.SIGKILL
    left = tmp_path / ".out.ixsearch-part"
    assert sorted(p.name for p in tmp_path.iterdir()) == [left.name, "model"]
    assert any((left / "new").iterdir())
    strip_indexers(sharded, PATTERN, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["model", "out"]
    assert_stripped(sharded, tmp_path / "out", indexers(1, 4, 5))
