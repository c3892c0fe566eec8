"""The bundled model: the conversion from the training workshop, and what the model can do."""

from __future__ import annotations

import importlib.util
import json
import os
import runpy
import sys
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
import torch

from ixsearch.bundled import MODEL_FOLDER as BUNDLED
from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.cache import PagedCache, blocks_for
from ixsearch.runtime.interface import Request
from ixsearch.runtime.step import Step
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import bundled_documents
from ixsearch.tasks.words import VOCABULARY
from ixsearch.tasks.worlds import draw_document

ROOT = Path(__file__).parents[2]
WORKSHOP = Path(os.environ.get("IXSEARCH_SHARED", ROOT.parent / "shared")) / "tiny-model"
CHECKPOINT = WORKSHOP / "checkpoints" / "drop.safetensors"
needs_workshop = pytest.mark.skipif(
    not CHECKPOINT.is_file(), reason=f"the training workshop is not at {WORKSHOP}"
)
ALL_FULL = Pattern.all_full(16)
SEARCHED = Pattern("FFSFSFFSSFFFSSSS")
INTERLEAVED = Pattern.uniform(16, 8)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.load(BUNDLED)


@pytest.fixture(scope="module")
def engine() -> NativeEngine:
    return NativeEngine.load(BUNDLED, device="cpu")


@torch.inference_mode()
def our_logits(engine: NativeEngine, tokens: tuple[int, ...], pattern: Pattern) -> torch.Tensor:
    model = engine.model
    cache = PagedCache(model.config, pattern, blocks_for(len(tokens)), model.dtype, model.device)
    table: list[int] = []
    cache.extend(table, len(tokens))
    step = Step.prefill(table, 0, len(tokens), model.device)
    return model.logits(model.forward(torch.tensor(tokens), pattern, cache, step))


def later_wins(scores: torch.Tensor, k: int, causal: torch.Tensor) -> torch.Tensor:
    """The mask of the k largest causal scores; of equal ones the later position."""
    width = scores.shape[-1]
    backwards = scores.masked_fill(~causal, -1e30).flip(-1)
    order = backwards.sort(dim=-1, descending=True, stable=True).indices[..., : min(k, width)]
    chosen = torch.zeros_like(causal.expand_as(scores)).scatter(-1, width - 1 - order, True)
    return chosen & causal


def load_workshop() -> ModuleType:
    """The workshop's model, with our tie rule and our LayerNorm epsilon in place of its own."""
    path = WORKSHOP / "model.py"
    source = path.read_text()
    for old, new in {"(1e-3 / T)": "0.0", "s.ix_g, s.ix_b)": "s.ix_g, s.ix_b, 1e-6)"}.items():
        assert source.count(old) == 1
        source = source.replace(old, new)
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_file_location("workshop_model", path)
    )
    sys.modules[module.__name__] = module
    exec(compile(source, str(path), "exec"), module.__dict__)
    module.topk_mask = later_wins
    return module


@pytest.fixture(scope="module")
def workshop():
    from safetensors.torch import load_file

    module = load_workshop()
    model = module.Tiny(module.Cfg(vocab=138, dim=256, layers=16, heads=4, ffn=640, topk=48))
    model.load_state_dict({name: t.float() for name, t in load_file(CHECKPOINT).items()})
    return model


@needs_workshop
@pytest.mark.parametrize("pattern", [ALL_FULL, SEARCHED, INTERLEAVED], ids=str)
@torch.inference_mode()
def test_logits_are_those_of_the_workshop(workshop, engine, tokenizer, pattern):
    for document in bundled_documents("calibration", 2, tokenizer, seed=7):
        flags = torch.tensor([pattern.is_full(i) for i in range(16)])
        tokens = torch.tensor([document.tokens])
        theirs, _ = workshop.fwd_sparse(tokens, flags, exact=True, dtype=torch.float32)
        ours = our_logits(engine, document.tokens, pattern)
        error = (ours - theirs[0]).abs().amax(-1)
        # Logits go up to 36; float32 rounding through 16 layers leaves up to 3e-4 in a few rows.
        assert error.median() < 2e-5
        assert (error > 1e-4).float().mean() < 0.02
        assert error.max() < 1e-4 * theirs.abs().max() / 3


@needs_workshop
def test_the_script_gives_the_committed_bytes(tmp_path, monkeypatch):
    script = ROOT / "scripts" / "convert_bundled.py"
    monkeypatch.setattr(sys, "argv", [str(script), str(CHECKPOINT), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    made = sorted(file.name for file in tmp_path.iterdir())
    assert len(made) == 5
    for name in made:
        assert (tmp_path / name).read_bytes() == (BUNDLED / name).read_bytes(), name


def test_answers_match_with_all_full_and_need_the_right_pattern(engine, tokenizer):
    documents = bundled_documents("test", 3, tokenizer, seed=1)
    patterns = [ALL_FULL, Pattern.uniform(16, 4)]
    full, uniform = engine.score(documents, patterns)
    assert all(all(score.matches) for score in full)
    assert sum(sum(score.matches) for score in uniform) <= 2


def test_it_writes_the_solution_past_the_trained_length(engine, tokenizer):
    document = draw_document(Random(11), max_tokens=900)
    prompt = tokenizer.encode(document.prompt(len(document.problems) - 1))
    assert len(prompt) > 768
    engine.set_pattern(ALL_FULL)
    (answer,) = engine.generate([Request(tuple(prompt), 96, tokenizer.eos_token_ids)])
    assert tokenizer.decode(answer) == f"{document.problems[-1].solution}\n"


def test_likelihoods_for_lm_eval_are_those_of_the_logits(engine, tokenizer):
    from lm_eval.api.instance import Instance

    from ixsearch.tasks.lm import EngineLM

    document = draw_document(Random(5))
    pair = (document.prompt(0), f" {document.problems[0].solution}")
    request = Instance("loglikelihood", {}, pair, 0)
    ((likelihood, greedy),) = EngineLM(engine, tokenizer, SEARCHED).loglikelihood([request])
    tokens = tuple(tokenizer.encode("".join(pair)))
    chances = our_logits(engine, tokens, SEARCHED).log_softmax(-1)
    start = len(tokenizer.encode(pair[0]))
    rows = chances[start - 1 : -1].gather(-1, torch.tensor(tokens[start:])[:, None])
    assert likelihood == pytest.approx(rows.sum().item(), abs=1e-5)
    assert greedy == all(chances[start - 1 : -1].argmax(-1) == torch.tensor(tokens[start:]))


def test_config_and_tokenizer_agree(engine, tokenizer):
    config = json.loads((BUNDLED / "config.json").read_text())
    assert config["vocab_size"] == tokenizer.vocab_size == len(VOCABULARY)
    assert [tokenizer.id_of(word) for word in VOCABULARY] == list(range(len(VOCABULARY)))
    assert tokenizer.eos_token_ids == {tokenizer.id_of("\n")} == {config["eos_token_id"]}
    assert tokenizer.encode("")[0] == config["bos_token_id"]
    assert engine.describe().indexer_layers == tuple(range(16))


def test_the_card_names_what_the_model_is_not():
    card = (BUNDLED / "README.md").read_text()
    for needed in ("random S layers", "training-free", "index_rope_head_dim", "Apache-2.0"):
        assert needed in card
