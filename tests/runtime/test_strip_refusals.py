"""Patterns and places for which no copy without indexers is made."""

from __future__ import annotations

from pathlib import Path

from ixsearch.patterns import IxsearchError, Pattern, PatternError
from ixsearch.runtime.strip_indexers import strip_indexers

from .shards import LAYERS, PATTERN
from .stripped import refused


def test_patterns_that_do_not_fit(sharded: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = refused(sharded, Pattern("FSFS"), out, kind=PatternError)
    assert "4 letters, the model 6 layers" in said
    said = refused(sharded, Pattern.all_full(LAYERS), out, kind=IxsearchError)
    assert "nothing is to strip" in said
    strip_indexers(sharded, PATTERN, out)
    said = refused(out, Pattern.all_full(LAYERS), tmp_path / "more", kind=PatternError)
    assert "F on layers 1, 4, 5" in said
    said = refused(out, PATTERN, tmp_path / "more", kind=IxsearchError)
    assert "nothing is to strip" in said


def test_places_that_are_refused(sharded: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(sharded)
    (tmp_path / "other").mkdir()
    inside = (tmp_path / "link/code/x", tmp_path / "other/../model/x")
    for place in (sharded, sharded / "out", *inside):
        said = refused(sharded, PATTERN, place, kind=IxsearchError)
        assert "in the model's own folder: give another place" in said
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/file").touch()
    said = refused(sharded, PATTERN, tmp_path / "taken", kind=IxsearchError)
    assert "is there already" in said
