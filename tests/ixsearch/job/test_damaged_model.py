"""A model with one damaged number: every command that scores it says so and exits 1."""

from __future__ import annotations

import pytest

from tests.runtime.damage import damaged_copy

from .small import run

PATTERN = "FSFSF"


@pytest.mark.parametrize("flags", [(), ("--offload",)], ids=str)
@pytest.mark.parametrize("name", ["self_attn.indexer.wk.weight", "self_attn.o_proj.weight"])
@pytest.mark.parametrize("command", ["evaluate", "compare", "optimize"])
def test_refused_with_the_layer(small, tmp_path, command, name, flags):
    model = damaged_copy(small / "model", tmp_path / "model", 2, name)
    given = ("--documents", small / "texts.jsonl", "--device", "cpu", *flags)
    args = {
        "evaluate": (model, "--pattern", PATTERN),
        "compare": ("FFFFF", PATTERN, "--model", model),
        "optimize": (model, "--storage", tmp_path / "a.db", "--out", tmp_path / "out"),
    }[command]
    code, out, err = run(command, *args, *given)
    assert code == 1 and out == "" and "unexpected" not in err
    assert "NaN or infinity, first in layer 2" in err and "under pattern FFFFF" in err
    assert not (tmp_path / "out").exists()
