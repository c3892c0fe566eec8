"""Options that cannot be right are refused at once: before torch is there, and before a phase."""

import subprocess
import sys

import pytest

from ixsearch.job.document_source import DocumentSource
from ixsearch.job.sources import Sources, check_sources
from ixsearch.patterns import IxsearchError

RUN = """
import sys
from typer.testing import CliRunner
from ixsearch.cli.app import app
done = CliRunner().invoke(app, sys.argv[1:])
print(done.exit_code, "torch" in sys.modules)
print(done.stderr)
"""


def run(*args):
    done = subprocess.run(
        [sys.executable, "-c", RUN, *args], capture_output=True, text=True, check=True
    )
    state, _, said = done.stdout.partition("\n")
    return state, said.strip()


@pytest.mark.parametrize("command", [["optimize"], ["evaluate", "--pattern", "F" * 16]])
def test_a_wrong_option_is_all_that_is_said(command):
    state, said = run(*command, "--device", "gpu")
    assert state == "2 False"
    assert said == "error: --device: 'gpu' is no device: write cpu, cuda or cuda:1"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"device": "meta"}, "--device: 'meta' is no device"),
        ({"device": "cuda:"}, "--device: 'cuda:' is no device"),
        ({"documents": ["nowhere.jsonl"]}, "nowhere.jsonl: No such file"),
        ({"model": "organisation/name"}, "organisation/name: give --documents FILE"),
        ({"model": "./nowhere"}, "no such folder: ./nowhere"),
        ({"latent_norm_eps": float("nan")}, "--latent-norm-eps nan"),
        ({"device_memory": 3.0}, "--device-memory belongs to --offload"),
        ({"device_memory": float("inf"), "offload": True}, "--device-memory inf"),
        ({"offload": True, "questions": 3}, "--offload can only score documents"),
        ({"context": 500}, "--context belongs to"),
        ({"documents": ["gsm8k-long"]}, "give --gsm8k too"),
        ({"documents": [__file__, "gsm8k-long=2"]}, "give --gsm8k too"),
        ({"documents": [__file__, f"{__file__}=2"]}, "is given 2 times: give it once"),
        ({"documents": [f"{__file__}=0"]}, "'0' is no weight: write a number above 0"),
        ({"documents": [f"{__file__}=-1"]}, "'-1' is no weight"),
        ({"documents": [f"{__file__}=inf"]}, "'inf' is no weight"),
        ({"documents": [f"{__file__}=nan"]}, "'nan' is no weight"),
        ({"documents": [f"{__file__}=half"]}, "'half' is no weight"),
        ({"documents": ["bundled="]}, "'' is no weight"),
        ({"documents": ["a=b.jsonl"]}, "a=b.jsonl: No such file"),
        ({"documents": [""]}, "--documents '' names no file"),
        ({"documents": ["=2"]}, "--documents '=2' names no file"),
        ({"documents": [f"{__file__}=1e308", "bundled=1e308"]}, "weights add up to inf"),
        ({"documents": [f"{__file__}=1e300", "bundled=1e-310"]}, "bundled=1e-310 counts less"),
        ({"model": "a/b", "documents": ["bundled", __file__]}, "in the bundled model's own"),
        ({"task": "gsm8k"}, "--task gsm8k: its questions do not come"),
        ({"model": "a/b", "documents": [__file__], "questions": 3}, "--questions: there are none"),
    ],
)
def test_what_is_refused(given, words):
    with pytest.raises(IxsearchError) as caught:
        check_sources(Sources(**given))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"device": "cuda:1", "questions": 3},
        {"documents": ["bundled=0.25", f"{__file__}=3"]},
        {"model": "a/b", "documents": [__file__]},
        {"offload": True, "device_memory": 0.5},
    ],
)
def test_what_is_not(given):
    check_sources(Sources(**given))


def test_a_file_whose_name_looks_like_a_weight(tmp_path):
    odd = tmp_path / "texts=2"
    odd.write_text("{}")
    assert DocumentSource.parse(str(odd)) == DocumentSource(str(odd), 1.0)
    assert DocumentSource.parse(f"{odd}=0.5") == DocumentSource(str(odd), 0.5)
    assert DocumentSource.parse("gsm8k-long=1e-1") == DocumentSource("gsm8k-long", 0.1)
