"""The commands with weights on disk, and with the switches of loading."""

from __future__ import annotations

import json

import pytest

from ixsearch.job import closer_look
from ixsearch.job.documents import from_file
from ixsearch.patterns import Pattern
from ixsearch.results import Quality
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.checkpoint import Checkpoint
from ixsearch.runtime.quantise import quantise_checkpoint
from ixsearch.runtime.score import Scorer
from ixsearch.runtime.tokenizer import Tokenizer

from .small import make_documents, make_model, misused, refused, run


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    base = tmp_path_factory.mktemp("offload-job")
    return make_model(base / "model"), make_documents(base / "texts.jsonl", count=8)


def compared(*args):
    code, out, err = run("compare", "FFFFF", "FSFSF", *args, "--device", "cpu", "--json")
    assert code == 0, err
    said = json.loads(out)
    return {k: v for k, v in said.items() if k not in ("date", "warnings")}, said["warnings"]


def test_compare_gives_the_same(place):
    model, texts = place
    args = ("--model", model, "--documents", texts)
    (want, none), (got, said) = compared(*args), compared(*args, "--offload")
    assert got == want
    assert not any("--offload" in text for text in none)
    assert any("nothing was decoded" in text for text in said)


def test_evaluate_scores_and_times_nothing(place):
    model, texts = place
    args = ("evaluate", model, "--pattern", "FSFSF", "--documents", texts, "--device", "cpu")
    code, out, err = run(*args, "--offload", "--json")
    assert code == 0, err
    said = json.loads(out)
    assert said["workload"] is None
    assert all(f["speed"] is None for f in said["finalists"])
    code, out, err = run(*args, "--offload")
    assert code == 0 and "(--offload)" in out


@pytest.mark.slow
def test_optimize_finds_the_same(place, tmp_path, monkeypatch):
    """And reads the weights once a batch of patterns, not once a pattern."""
    model, texts = place
    reads = []
    monkeypatch.setattr(closer_look, "NEW_TOKENS", 2)
    plain = Checkpoint.read
    monkeypatch.setattr(
        Checkpoint, "read", lambda self, name, p=False: reads.append(name) or plain(self, name, p)
    )
    found = []
    for flags in ((), ("--offload",)):
        out = tmp_path / f"out{len(flags)}"
        storage = tmp_path / f"{len(flags)}.db"
        code, text, err = run(
            *("optimize", model, "--documents", texts, "--device", "cpu", "--budget", "3,2"),
            *("--out", out, "--storage", storage, "--json", *flags),
        )
        assert code == 0, err
        assert (out / "pattern.yaml").is_file() and (out / "report.md").is_file()
        found.append(
            {f["pattern"]: (f["calibration"], f["held_out"]) for f in json.loads(text)["finalists"]}
        )
        passes = reads.count("model.norm.weight")
        reads.clear()
    assert found[0] == found[1]
    assert 1 < passes < 20


def test_decoding_is_refused_before_anything_is_loaded(place, tmp_path):
    model, texts = place
    args = ("evaluate", model, "--pattern", "FSFSF", "--documents", texts, "--offload")
    assert "--offload can only score" in misused(*args, "--gsm8k", tmp_path)
    assert "--offload can only score" in misused(*args, "--questions", 3)


def test_the_switches_reach_the_engine(place, tmp_path):
    """A large eps changes scores, and a study does not mix the two."""
    model, texts = place
    args = ("--model", model, "--documents", texts)
    assert compared(*args) != compared(*args, "--latent-norm-eps", "0.1")
    search = ("optimize", model, "--documents", texts, "--offload", "--budget", "2")
    kept = ("--out", tmp_path / "out", "--storage", tmp_path / "s.db")
    assert run(*search, *kept, "--n-trials", 3)[0] == 0
    text = refused(*search, *kept, "--latent-norm-eps", "0.1")
    assert "latent_norm_eps: as in config.json in the study, 0.1 now" in text


def test_a_limit_on_the_memory_of_the_device(place, monkeypatch):
    """States get what one layer leaves of it; a limit below one layer is refused."""
    model, texts = place
    args = ("--model", model, "--documents", texts)
    rooms = []
    plain = Scorer._place_of_states
    monkeypatch.setattr(
        Scorer,
        "_place_of_states",
        lambda self, *args: rooms.append(self.model.state_room) or plain(self, *args),
    )
    want, _ = compared(*args, "--offload")
    got, _ = compared(*args, "--offload", "--device-memory", "0.25")
    assert got == want
    assert rooms[0] is None and 0.25e9 - 100_000 < rooms[-1] < 0.25e9
    compare = ("compare", "FFFFF", "FSFSF", *args, "--device", "cpu")
    text = refused(*compare, "--offload", "--device-memory", "0.00001")
    assert "and 10,000 are to be used" in text and "raise --device-memory" in text
    assert "belongs to --offload" in misused(*compare, "--device-memory", "1")
    assert "write gigabytes" in misused(*compare, "--offload", "--device-memory", "inf")


@pytest.mark.parametrize("cache", ["fp8-indexer", "fp8"])
def test_caches_in_fp8(place, tmp_path, cache):
    """Scores are those of an engine with such caches, and a study does not mix two forms."""
    model, texts = place
    args = ("--model", model, "--documents", texts)
    plain, _ = compared(*args)
    found, _ = compared(*args, "--cache", cache)
    assert (plain["model"]["cache"], found["model"]["cache"]) == ("float", cache)
    assert compared(*args, "--cache", "float")[0] == plain
    assert found["b"]["divergence"] == divergence(model, texts, cache)
    assert found["b"]["divergence"] != plain["b"]["divergence"]
    search = ("optimize", model, "--documents", texts, "--offload", "--budget", "2")
    kept = ("--out", tmp_path / "out", "--storage", tmp_path / "s.db")
    assert run(*search, *kept, "--n-trials", 3)[0] == 0
    text = refused(*search, *kept, "--cache", cache)
    assert f"cache: float in the study, {cache} now" in text
    assert run("compare", "FFFFF", "FSFSF", *args, "--cache", "int4")[0] == 2


def divergence(model, texts, cache):
    """Of FSFSF on the held-out documents, by the engine."""
    engine = NativeEngine.load(model, device="cpu", cache=cache)
    split = from_file(texts, Tokenizer.load(model), engine.describe(), seed=0)
    (row,) = engine.score(split.held_out, [Pattern("FSFSF")])
    return Quality.of(row).divergence


def test_fp8_modes(place, tmp_path):
    model, texts = place
    folder = quantise_checkpoint(model, tmp_path / "fp8")
    args = ("--model", folder, "--documents", texts)
    assert compared(*args, "--fp8", "keep") == compared(*args, "--fp8", "dequantise")
    assert run("compare", "FFFFF", "FSFSF", *args, "--fp8", "no")[0] == 2
