"""Weights streamed through the device: the same scores, one read a pass, one layer at a time."""

import gc
import os
import shutil
import time
from collections import Counter

import pytest
import torch
from safetensors.torch import load_file

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime import NativeEngine, score
from ixsearch.runtime.checkpoint import Checkpoint
from ixsearch.runtime.interface import Document, Request, Workload
from ixsearch.runtime.model import DecoderLayer
from ixsearch.runtime.quantise import quantise_checkpoint
from ixsearch.runtime.scoring_pass import ScoringPass

from .oracle import make_model, save
from .test_score import EVERY, documents

LAYERS = 14
PATTERNS = [Pattern(p) for p in ("F" * 14, "FS" * 7, "FFSSSFS" * 2, "FS" + "FFS" * 4)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Layers alike in size: a checkpoint many times larger than one of them."""
    model = make_model(
        "deepseek_v32", 9, num_hidden_layers=LAYERS, first_k_dense_replace=0, vocab_size=97
    )
    return save(model, tmp_path_factory.mktemp("offload"))


@pytest.fixture
def reads(monkeypatch):
    """Counts the reads of each tensor."""
    counted = Counter()
    plain = Checkpoint.read

    def spy(self, name, pinned=False):
        counted[name] += 1
        return plain(self, name, pinned)

    monkeypatch.setattr(Checkpoint, "read", spy)
    return counted


def live_bytes(but=()):
    """Of every tensor that is alive, each storage once, but those that were before."""
    storages = {}
    for thing in gc.get_objects():
        if type(thing) is torch.Tensor:
            storage = thing.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(size for at, size in storages.items() if at not in but)


def live_storages():
    return {t.untyped_storage().data_ptr() for t in gc.get_objects() if type(t) is torch.Tensor}


def test_five_times_larger_than_the_budget(folder, reads, monkeypatch):
    """Bytes alive at once, reads, and the bits of the scores."""
    size = (folder / "model.safetensors").stat().st_size
    budget = size // 5
    texts = [Document(d.name, d.tokens[:40], ()) for d in documents()]
    resident = NativeEngine.load(folder, device="cpu")
    want = resident.score(texts, PATTERNS)
    del resident
    gc.collect()
    engine = NativeEngine.load(folder, device="cpu", offload=True, device_budget=budget)
    reads.clear()
    before, weights, most = live_storages(), [], []
    plain_init, plain_call = DecoderLayer.__init__, DecoderLayer.__call__

    def init(self, *args):
        plain_init(self, *args)
        weights.append(sum(t.nbytes for t in own_tensors(self)))

    def call(self, *args):
        most.append(live_bytes(before))
        return plain_call(self, *args)

    monkeypatch.setattr(DecoderLayer, "__init__", init)
    monkeypatch.setattr(DecoderLayer, "__call__", call)
    assert engine.score(texts, PATTERNS) == want
    # This layer, the next one read ahead, and states: never a third layer.
    assert len(weights) == LAYERS and max(weights) * 5 < size
    assert max(weights) < max(most) < 3 * max(weights)
    assert max(most) <= budget <= size / 5
    assert reads == Counter(dict.fromkeys(load_file(folder / "model.safetensors"), 1))


def own_tensors(thing, seen=None):
    from .test_fp8 import tensors_of

    return tensors_of(thing, seen)


def test_a_pass_reads_once_however_much_it_scores(deepseek_folder, reads, monkeypatch):
    """Also where the resident engine would take documents group by group."""
    monkeypatch.setitem(score.STATE_BYTES, "cpu", 1)
    engine = NativeEngine.load(deepseek_folder, device="cpu", offload=True)
    names = load_file(deepseek_folder / "model.safetensors").keys()
    assert not reads
    engine.score(documents(), EVERY)  # the baseline goes along
    assert reads == Counter(dict.fromkeys(names, 1))
    engine.score(documents(), EVERY[:3])
    assert reads == Counter(dict.fromkeys(names, 2))


@pytest.mark.parametrize("budget", [None, 1 << 20, 1 << 30])
def test_bit_equal_to_the_resident_engine(saved, budget):
    _, folder = saved
    resident = NativeEngine.load(folder, device="cpu")
    engine = NativeEngine.load(folder, device="cpu", offload=True, device_budget=budget)
    assert engine.describe() == resident.describe()
    assert engine.score(documents(), EVERY[::3]) == resident.score(documents(), EVERY[::3])
    assert engine.score(documents()[:1], EVERY[:2]) == resident.score(documents()[:1], EVERY[:2])


@pytest.mark.parametrize("slow", ["reading", "computing"])
def test_a_layer_runs_when_it_has_been_read(deepseek_folder, monkeypatch, slow):
    """Whichever of the two is behind, nothing runs on weights that are not there yet."""
    want = NativeEngine.load(deepseek_folder, device="cpu").score(documents(), EVERY[::7])
    engine = NativeEngine.load(deepseek_folder, device="cpu", offload=True)
    name = "__init__" if slow == "reading" else "__call__"
    plain = getattr(DecoderLayer, name)

    def late(self, *args):
        time.sleep(0.01)
        return plain(self, *args)

    monkeypatch.setattr(DecoderLayer, name, late)
    assert engine.score(documents(), EVERY[::7]) == want


@pytest.mark.parametrize("mode", ["keep", "dequantise"])
def test_fp8(deepseek_folder, tmp_path, mode, reads):
    folder = quantise_checkpoint(deepseek_folder, tmp_path / "fp8")
    resident = NativeEngine.load(folder, device="cpu", fp8=mode).score(documents(), EVERY[::7])
    reads.clear()
    engine = NativeEngine.load(folder, device="cpu", fp8=mode, offload=True)
    assert engine.score(documents(), EVERY[::7]) == resident
    assert reads == Counter(dict.fromkeys(load_file(folder / "model.safetensors"), 1))


def test_tied_embeddings(tmp_path):
    folder = save(make_model("deepseek_v32", 2, tie_word_embeddings=True), tmp_path)
    want = NativeEngine.load(folder, device="cpu").score(documents(), EVERY[:3])
    engine = NativeEngine.load(folder, device="cpu", offload=True)
    assert engine.score(documents(), EVERY[:3]) == want


def test_states_wait_in_host_memory_when_the_device_is_full(deepseek_folder, monkeypatch):
    """On a CPU both places are one: `meta` stands in for the host, and is seen through."""
    moves = []
    plain = torch.Tensor.to

    def spy(self, *args, **kwargs):
        moves.append(args[0])
        return self if args[0] == torch.device("meta") else plain(self, *args, **kwargs)

    largest = 400_000
    tight = NativeEngine.load(deepseek_folder, device="cpu", offload=True, device_budget=largest)
    wide = NativeEngine.load(deepseek_folder, device="cpu", offload=True, device_budget=1 << 30)
    monkeypatch.setattr(score, "HOST", torch.device("meta"))
    monkeypatch.setattr(torch.Tensor, "to", spy)
    want = wide.score(documents(), [Pattern("FSFFFF")])
    assert torch.device("meta") not in moves
    assert tight.score(documents(), [Pattern("FSFFFF")]) == want
    # Of 3 documents: the embedding; 11 states that the trie has; the top-k of its 10 F nodes
    # (slots, indices, counts); what is kept of the baseline for later calls.
    assert moves.count(torch.device("meta")) == 3 * (1 + 11 + 3 * 10 + 1)


def test_a_topk_that_is_carried_on_rests_where_it_is(deepseek_folder, monkeypatch):
    """One copy for an F layer and all S layers of its group."""
    engine = NativeEngine.load(deepseek_folder, device="cpu", offload=True)
    seen = []
    plain = ScoringPass._through

    def spy(self, layer, state, full, resting):
        after = plain(self, layer, state, full, resting)
        seen.append(after.carried is resting.carried)
        assert full or after.carried is resting.carried
        return after

    monkeypatch.setattr(ScoringPass, "_through", spy)
    engine.score(documents()[:1], [Pattern("FSSFSS")])
    assert seen.count(True) == 4 and seen.count(False) == 7


def test_what_offload_cannot_do_is_refused(deepseek_folder):
    engine = NativeEngine.load(deepseek_folder, device="cpu", offload=True)
    engine.set_pattern(Pattern("FSFSFS"))
    with pytest.raises(IxsearchError, match="cannot decode with offload"):
        engine.generate([Request((1, 2), 3)])
    with pytest.raises(IxsearchError, match="cannot measure speed with offload"):
        engine.measure(Workload(8, 1, 1))
    with pytest.raises(IxsearchError, match="cannot serve requests with offload"):
        engine.serving(4)


def test_a_layer_larger_than_the_budget(deepseek_folder):
    with pytest.raises(IxsearchError, match="the largest layer takes"):
        NativeEngine.load(deepseek_folder, device="cpu", offload=True, device_budget=1000)


def test_states_larger_than_the_machine(deepseek_folder, monkeypatch):
    monkeypatch.setattr(score, "host_memory", lambda: 1000)
    engine = NativeEngine.load(deepseek_folder, device="cpu", offload=True)
    with pytest.raises(IxsearchError, match="more than this machine's memory"):
        engine.score(documents(), EVERY[:2])


@pytest.mark.parametrize("change", ["rewritten", "replaced", "longer"])
@pytest.mark.parametrize("when", ["before a pass", "within a pass"])
def test_weights_that_change_are_not_mixed(deepseek_folder, tmp_path, change, when):
    """What is kept of all-F is of the old ones."""
    folder = shutil.copytree(deepseek_folder, tmp_path / "copy")
    file = folder / "model.safetensors"
    engine = NativeEngine.load(folder, device="cpu", offload=True)
    engine.score(documents(), EVERY[:2])

    def go_on(share=1.0):
        if share > 0.3 and not changed:
            changed.append(share)
            change_weights(file, change)

    changed = []
    if when == "before a pass":
        go_on()
    with pytest.raises(IxsearchError, match=r"model.safetensors has changed since .* load it"):
        engine.score(documents(), EVERY[:2], go_on)
    assert changed


def change_weights(file, change):
    """Of the last tensor; the header stays what it was."""
    data = bytearray(file.read_bytes())
    data[-100:] = data[-200:-100]
    target = file.with_suffix(".new") if change == "replaced" else file
    target.write_bytes(data + b"0" * (change == "longer"))
    target.replace(file)


def test_a_reading_error_ends_the_pass(deepseek_folder, tmp_path):
    """The thread's error is the caller's, and the engine can be used again."""
    folder = shutil.copytree(deepseek_folder, tmp_path / "copy")
    engine = NativeEngine.load(folder, device="cpu", offload=True)
    file = folder / "model.safetensors"
    whole, before = file.read_bytes(), file.stat().st_mtime_ns
    file.write_bytes(whole[:1000])
    with pytest.raises(IxsearchError, match="become shorter"):
        engine.score(documents(), EVERY[:2])
    file.write_bytes(whole)
    os.utime(file, ns=(before, before))
    want = NativeEngine.load(deepseek_folder, device="cpu").score(documents(), EVERY[:2])
    assert engine.score(documents(), EVERY[:2]) == want
