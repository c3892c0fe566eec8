"""Numbers agree with their words."""

from __future__ import annotations

from typing import Any

import pytest

from ixsearch.patterns import Options, Stages, lint, read_anything
from ixsearch.patterns.counting import agreeing, counted, named_layers
from ixsearch.patterns.dialects import EngineSpec, parse_engine


def test_one_is_no_plural() -> None:
    words = [counted(number, "document") for number in (0, 1, 2, 2048)]
    assert words == ["0 documents", "1 document", "2 documents", "2,048 documents"]
    assert [agreeing(number, "is", "are") for number in (0, 1, 2)] == ["are", "is", "are"]


def test_layers_are_named() -> None:
    assert named_layers([3]) == "layer 3"
    assert named_layers([3, 5]) == "layers 3, 5"
    assert named_layers(range(9)) == "layers 0, 1, 2, 3, 4, 5, 6, 7 and 1 more"


@pytest.mark.parametrize(
    ("letters", "engine", "options", "message"),
    [
        ("FFSX", "", {}, "layer 3 is 'X'"),
        ("FFXX", "", {}, "layers 2, 3 are 'X'"),
        ("FSFF", "vllm==0.28.0", {"stages": Stages.of((1, 3))}, "begins with layer 1, which is S"),
        (
            "FSSF",
            "vllm==0.28.0",
            {"stages": Stages.of((1, 1, 2))},
            "pipeline stages begin with layers 1, 2, which are S, and have for indices a buffer",
        ),
        ("FFSs", "vllm==0.28.0", {}, "layer 3 is taken for F"),
        ("FFss", "vllm==0.28.0", {}, "layers 2, 3 are taken for F"),
        ("FFFF", "", {"stages": Stages.of((3, 2))}, "the model has 4 layers"),
        ("F", "", {"stages": Stages(2)}, "2 stages for 1 layer"),
    ],
)
def test_findings_agree(letters: str, engine: str, options: dict[str, Any], message: str) -> None:
    engines: tuple[EngineSpec, ...] = (parse_engine(engine),) if engine else ()
    report = lint(read_anything(letters), None, Options(engines, **options))
    assert [f.message for f in report.findings if message in f.message], report.findings
