"""A study that is there already, of another search: said with what differs."""

from __future__ import annotations

import pytest

from tests.runtime.changes import change_tensors

from .small import all_of, copy_storage, make_documents, make_model


@pytest.fixture
def old_study(finished, tmp_path):
    """The options that name a finished study of the small model."""
    storage = copy_storage(finished.storage, tmp_path / "old.db")
    return {"storage": storage, "study_name": finished.said["study"]["name"]}


def test_a_study_of_other_documents(ask, old_study, tmp_path):
    text = ask(documents=make_documents(tmp_path / "other.jsonl", seed=5), **old_study)
    all_of(text, old_study["study_name"], "documents: ", "in the study", "--study-name")
    assert "weights_hash" not in text and "seed" not in text.partition("\n")[2]


def test_a_study_of_another_seed(ask, old_study):
    all_of(ask(seed=1, **old_study), "seed: 0 in the study, 1 now", "documents: ")


def test_a_study_of_a_fine_tune(ask, old_study, model):
    change_tensors(model, lambda t: t["model.norm.weight"].mul_(1.5))
    text = ask(model, **old_study)
    all_of(text, "weights_hash: ")
    assert "documents: " not in text and "config_hash" not in text


def test_a_study_of_another_model(ask, old_study, tmp_path):
    model = make_model(tmp_path / "other", num_hidden_layers=4, first_k_dense_replace=4)
    text = ask(model, **old_study)
    all_of(text, "num_layers: 5 in the study, 4 now", "config_hash: ", "weights_hash: ")
