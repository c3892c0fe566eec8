"""The MTP layer of the bundled model: how much of what it drafts is right."""

from random import Random

import pytest

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Request
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import bundled_documents
from ixsearch.tasks.worlds import draw_document

from .drafting import assert_same
from .forward import mtp_forward


@pytest.fixture(scope="module")
def bundled():
    return NativeEngine.load(MODEL_FOLDER, device="cpu")


def test_the_bundled_layer_drafts_what_the_model_writes(bundled, poisoned):
    tokenizer = Tokenizer.load(MODEL_FOLDER)
    document = draw_document(Random("test 1 0"))
    prompts = [tokenizer.encode(document.prompt(number)) for number in (0, 1)]
    bundled.set_pattern(Pattern.all_full(16))
    requests = [Request(tuple(p), 40, tokenizer.eos_token_ids) for p in prompts]
    plain = bundled.generate(requests)
    found = bundled.generate(requests, speculative=2)
    assert_same(plain, found, bundled.speculation)
    assert bundled.speculation.accepted > 25
    # A second draft builds on the layer's own output, which it was not trained on.
    assert bundled.speculation.drafted - bundled.speculation.accepted > 5


def test_teacher_forced_acceptance_of_the_bundled_layer(bundled):
    """Drafts of token p + 2 against the model's argmax at p + 1, on the tokens of answers."""
    same = total = 0
    for document in bundled_documents("test", 2, Tokenizer.load(MODEL_FOLDER)):
        logits, drafts = mtp_forward(bundled.model, Pattern.all_full(16), document.tokens)
        agree = logits.argmax(-1)[1:] == drafts.argmax(-1)[:-1]
        asked = [t - 2 for t in document.scored_targets(0)]
        same += int(agree[asked].sum())
        total += len(asked)
    assert total > 200 and same / total >= 0.95
