"""A folder for many examples in turn."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ixsearch-fuzz-"))
    yield folder
    shutil.rmtree(folder)
