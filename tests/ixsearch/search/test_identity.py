"""What a study is for, and what is said where it was made for something else."""

from unittest.mock import MagicMock

import pytest

from ixsearch.patterns import IxsearchError
from ixsearch.search.identity import check_identity, identity_of


def test_fp8_caches_are_another_identity():
    """A study of before there was a choice was made with float caches, and stays so."""
    info = MagicMock(cache="float")
    plain = identity_of(info, "digest", 0)
    info.cache = "fp8"
    assert "cache" not in plain and identity_of(info, "digest", 0) == plain | {"cache": "fp8"}
    with pytest.raises(IxsearchError, match="cache: float in the study, fp8 now"):
        check_identity("study", {"seed": 0}, {"seed": 0, "cache": "fp8"})


@pytest.mark.parametrize(
    ("stored", "wanted", "told", "mend"),
    [
        ({}, {"objective": "loss"}, "objective: divergence in", "with --objective divergence;"),
        ({"objective": "loss"}, {}, "loss in the study, divergence now", "with --objective loss;"),
        ({}, {"latent_norm_eps": 0.1}, "as in config.json in", "without --latent-norm-eps;"),
        ({"latent_norm_eps": 0.1}, {}, "0.1 in the study", "with --latent-norm-eps 0.1;"),
        (
            {"cache": "fp8"},
            {"objective": "accuracy"},
            "cache: fp8 in the study, float now",
            "with --cache fp8 and with --objective divergence;",
        ),
    ],
)
def test_other_settings_are_told_with_the_way_back(stored, wanted, told, mend):
    with pytest.raises(IxsearchError) as caught:
        check_identity("study", {"seed": 0, **stored}, {"seed": 0, **wanted})
    head, *lines, last = str(caught.value).splitlines()
    assert head == "study was made with other settings:"
    assert told in "\n".join(lines) and "not set" not in str(caught.value)
    assert mend in last and last.endswith("or choose another --study-name or --storage")


def test_a_setting_is_no_way_back_to_other_documents():
    with pytest.raises(IxsearchError) as caught:
        check_identity("study", {"documents": "a"}, {"documents": "b", "objective": "loss"})
    head, *_, last = str(caught.value).splitlines()
    assert head == "study was made for other documents and with other settings:"
    assert last == "choose another --study-name or --storage"
