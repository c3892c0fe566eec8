"""The MTP layer as it was trained, and as the runtime runs it: the bundled model's."""

from __future__ import annotations

import pytest
import torch
from training.exam import Exam
from training.export import load_folder

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine

from ..runtime.forward import mtp_forward


@pytest.mark.parametrize("pattern", ["F" * 16, "FSFFFFFSFFSSSFSF"])
@torch.no_grad()
def test_the_runtime_drafts_as_the_trainer(pattern):
    engine = NativeEngine.load(MODEL_FOLDER, device="cpu")
    trained, layer = load_folder(MODEL_FOLDER)
    batch = Exam.draw("test", 1, torch.device("cpu")).tokens[:, :400]
    run = trained.begin(batch)
    hidden = trained.sparse(batch, run, [letter == "F" for letter in pattern])
    want = layer(trained, batch, hidden, run)[0, :-1]
    _, got = mtp_forward(engine.model, Pattern(pattern), batch[0].tolist(), chunk=150)
    error = (got - want).abs().amax(-1)
    assert error.median() < 1e-4
    # In a few rows rounding decides between two positions of nearly equal scores.
    assert (error > 1e-3).float().mean() < 0.02
    assert (got.argmax(-1) == want.argmax(-1)).float().mean() > 0.99
