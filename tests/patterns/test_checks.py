from __future__ import annotations

from dataclasses import replace

import pytest

from ixsearch.patterns import (
    Finding,
    ModelConfig,
    ModelIdentity,
    Place,
    check_architecture,
    check_for_model,
    check_letters,
    check_same_model,
)
from ixsearch.patterns.findings import merged

MODEL = ModelConfig(
    source="m",
    architecture="DeepseekV32ForCausalLM",
    model_type="deepseek_v32",
    num_hidden_layers=6,
    index_topk=48,
    config_hash="aa",
    indexer_layers=(0, 1, 2, 3, 4, 5),
    values={},
)


def said(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.level, finding.message) for finding in findings]


def test_a_pattern_that_fits_gives_nothing() -> None:
    assert check_letters("FFSSSF") == []
    assert check_for_model("FFSSSF", MODEL) == []


def test_all_f_is_noted() -> None:
    ((level, message),) = said(check_letters("FFF"))
    assert level == "info" and "nothing is shared" in message


def test_letters_and_length_are_told_together() -> None:
    place = Place("p.yaml", 2, 10)
    found = check_letters("sfX", lambda layer: place) + check_for_model(
        "sfX", MODEL, lambda layer: place
    )
    assert [f.code for f in found] == ["IX103", "IX103", "IX102", "IX201"]
    assert str(found[0]).startswith("p.yaml:2:10: layer 0 is 's': write S")
    assert found[-1].message == "the pattern has 3 letters, the model 6 layers"


@pytest.mark.parametrize("letters", ["FFSSS", "FFSSSFF"])
def test_length(letters: str) -> None:
    ((level, message),) = said(check_for_model(letters, MODEL))
    assert level == "error" and f"{len(letters)} letters" in message


def test_f_needs_indexer_weights() -> None:
    model = replace(MODEL, indexer_layers=(0, 2))
    assert check_for_model("FSFSSS", model) == []
    ((level, message),) = said(check_for_model("FFSSSF", model))
    assert level == "error" and message.startswith("F on layers 1, 5: ")
    ((_, message),) = said(check_for_model("FFSSSF", replace(MODEL, indexer_layers=())))
    assert "no indexer weights on any layer" in message
    ((level, message),) = said(check_for_model("FFSSSF", replace(MODEL, indexer_layers=None)))
    assert level == "info" and "not checked" in message


def test_architecture() -> None:
    ((level, message),) = said(check_architecture(replace(MODEL, architecture="NewForCausalLM")))
    assert level == "warning" and "NewForCausalLM" in message
    assert check_architecture(replace(MODEL, architecture="GlmMoeDsaForCausalLM")) == []
    ((level, message),) = said(check_architecture(replace(MODEL, index_topk=None)))
    assert level == "error" and "no index_topk" in message


def test_made_for_another_model() -> None:
    same = ModelIdentity("DeepseekV32ForCausalLM", 6, "deepseek_v32", "aa")
    assert check_same_model(same, MODEL) == []
    assert check_same_model(replace(same, config_hash=""), MODEL) == []
    ((level, message),) = said(check_same_model(replace(same, config_hash="bb"), MODEL))
    assert level == "warning" and "config hash bb, this one has aa" in message
    ((level, message),) = said(check_same_model(replace(same, architecture="X"), MODEL))
    assert level == "warning" and "is for a X" in message


def test_a_finding_prints_place_message_and_mend() -> None:
    assert str(Finding("IX101", "m", "do", Place("f", 1, 2))) == "f:1:2: m: do"
    assert str(Finding("IX101", "m", place=Place("f"))) == "f: m"
    assert str(Finding("IX101", "m")) == "m"
    assert str(Finding("IX405", "m", engines=("vLLM 0.22", "ATOM"))) == "vLLM 0.22, ATOM: m"
    where = {"file": "f", "line": 1, "column": 2}
    assert Finding("IX101", "m", "", Place("f", 1, 2)).to_json()["where"] == where


def test_an_error_that_may_not_concern_the_user_is_a_warning() -> None:
    found = Finding("IX406", "m")
    assert (found.level, found.softened().level) == ("error", "warning")
    assert Finding("IX403", "m").softened().level == "info"


def test_findings_that_differ_in_the_engine_alone_are_one() -> None:
    one, two = Finding("IX406", "m", engines=("A",)), Finding("IX406", "m", engines=("B",))
    other = Finding("IX406", "n", engines=("B",))
    assert merged([one, other, two]) == [replace(one, engines=("A", "B")), other]
