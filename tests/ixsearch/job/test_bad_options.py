"""Options that are none, or that the model or each other rule out."""

from __future__ import annotations

import pytest
import torch

from tests.runtime.changes import change_tensors

from .small import LAYERS, all_of, run


@pytest.mark.parametrize(
    ("code", "option", "value", "words"),
    [
        (2, "budget", "0", ["0 F layers", "ask for 1 or more"]),
        (1, "budget", "3,6", [f"6 F layers of {LAYERS}", f"1 to {LAYERS}"]),
        (2, "budget", "-1", ["-1 F layers"]),
        (2, "pin-full", "x", ["--pin-full: 'x' is not a layer", "like 3,7-9"]),
        (1, "pin-full", "3-7", ["cannot pin layers 5, 6, 7", "layers 0 to 4"]),
        (2, "pin-shared", "0-1", ["cannot pin layer 0 S", "--pin-shared"]),
        (1, "pp", "6", ["6 stages for 5 layers", "--pp-partition"]),
        (1, "pp-partition", "2,2", ["the partition 2 + 2 = 4, the model has 5 layers"]),
        (2, "budget", "3,,2", ["empty entry", "like 8,5,4"]),
        (2, "budget", "", ["empty entry"]),
        (2, "budget", "half", ["'half' is not a whole number", "--retention"]),
        (2, "budget", "0.5", ["'0.5' is not a whole number", "--retention"]),
        (2, "retention", "1.5", ["1.5 is not above 0 and at most 1", "--budget"]),
        (2, "retention", "0", ["0 is not above 0"]),
        (1, "retention", "0.01", [f"0 F layers of {LAYERS}"]),
        (2, "retention", "1/0", ["not a share", "like 0.5 or 1/2"]),
        (2, "retention", "", ["empty entry"]),
        (2, "search", "gredy", ["'gredy'", "'lazy-greedy', 'greedy'"]),
        (2, "device", "gpu", ["--device", "'gpu'", "write cpu, cuda"]),
        (2, "device", "mps", ["--device", "'mps'", "write cpu, cuda"]),
    ],
)
def test_a_bad_option(ask, code, option, value, words):
    all_of(ask(exit_code=code, **{option: value}), f"--{option}", *words)


def test_constraints_that_contradict_each_other(ask):
    text = ask(exit_code=2, pin_full="1,3", pin_shared="3-4")
    all_of(text, "layer 3 is pinned both F and S")
    all_of(ask(pp_partition="2,3", pin_shared="2"), "begins with layer 2", "is pinned S")
    all_of(ask(pin_full="1,2", budget="2"), "2 F layers are impossible", "ask for 3 to 5")
    all_of(ask(pin_shared="3", pp_partition="1,4", budget="5"), "ask for 2 to 4")


def test_a_budget_that_the_checkpoint_does_not_allow(ask, model):
    bare = [f"model.layers.{i}.self_attn.indexer." for i in (1, 4)]
    change_tensors(
        model, lambda t: [t.pop(n) for n in list(t) if any(n.startswith(b) for b in bare)]
    )
    all_of(ask(model, budget="4"), "4 F layers are impossible", "ask for 1 to 3")


def test_budget_and_retention(ask, monkeypatch):
    monkeypatch.setattr("ixsearch.job.optimize.load_inputs", None)  # found before the model loads
    text = ask(exit_code=2, budget="3", retention="0.5")
    all_of(text, "--budget and --retention", "one of them")


@pytest.mark.usefixtures("no_search")
@pytest.mark.parametrize(
    "args",
    [
        ["--budgt", "3"],
        ["--n-trials", "0"],
        ["--n-trials", "many"],
        ["--timeout", "-1"],
        ["--timeout", "nan"],
        ["--tolerance", "2"],
        ["--tolerance", "nan"],
        ["--questions", "0"],
        ["--seed", "x"],
        ["model", "another"],
    ],
)
def test_wrong_usage(args):
    code, out, err = run("optimize", *args)
    assert (code, out) == (2, "") and "Usage:" in err


@pytest.mark.usefixtures("no_search")
def test_the_searches_of_the_help_are_those_that_there_are():
    from ixsearch.search.strategy import SEARCHES

    code, _, err = run("optimize", "--search", "none")
    assert code == 2 and ", ".join(map(repr, SEARCHES)) in err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_where_there_is_none(ask):
    all_of(ask(device="cuda"), "--device", "no CUDA device", "--device cpu")
    all_of(ask(device="cuda:3"), "cuda:3 is not usable")
