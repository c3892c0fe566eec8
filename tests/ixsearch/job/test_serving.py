"""The commands that `optimize` tells are run as they stand."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import yaml

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.job.served_model import served_model
from ixsearch.job.sources import Sources
from ixsearch.patterns import read_model_config
from ixsearch.patterns.dialects import newest

from .small import run

pytestmark = pytest.mark.usefixtures("quick_speed")
VLLM = f"vllm=={newest('vllm').read_to}"


@pytest.fixture(scope="module")
def search(small, answered, tmp_path_factory):
    """A search that recommends a pattern: all that it said, on the terminal and in files."""
    folder = tmp_path_factory.mktemp("serving")
    args = (
        *("optimize", small / "model", "--documents", answered, "--device", "cpu"),
        *("--budget", 3, "--tolerance", 1, "--storage", folder / "study.db", "--out"),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ixsearch.job.closer_look.NEW_TOKENS", 2)
        patch.chdir(folder)
        code, out, err = run(*args, "out", "--json")
        assert code == 0, err
        shown = run(*args, "out")[1]
    said = json.loads(out)
    assert "S" in said["recommendation"]["served"]
    return folder / "out", said, shown


def test_spare_indexers_are_told_wherever_the_pattern_is_shown(search):
    out, said, shown = search
    vllm, sglang = said["serving"]
    assert [f["code"] for f in vllm["findings"]] == ["IX406"] and sglang["findings"] == []
    strip = vllm["commands"][0]
    settings = (out / "overrides/vllm.yaml").read_text()
    for text in (shown, (out / "report.md").read_text(), settings):
        assert "IX406: vLLM " in text and strip in text
    head = [line for line in settings.splitlines() if line.startswith("#")]
    assert "IX406" in head[0] and f"First: {strip}" in head[1]
    assert "hf-overrides" in yaml.safe_load(settings)
    assert "IX406" not in (out / "overrides/sglang.yaml").read_text()
    for command in (*vllm["commands"], *sglang["commands"]):
        assert command in (out / "report.md").read_text().splitlines()
        assert f"  {command}" in shown.splitlines()


def test_the_line_that_is_told_mends_it(search, small, tmp_path, monkeypatch):
    """From another folder than the search ran in."""
    out, said, _ = search
    monkeypatch.chdir(tmp_path)
    strip, serve = (shlex.split(line) for line in said["serving"][0]["commands"])
    served = said["recommendation"]["served"]
    assert run("validate", served, "--model", small / "model", "--engine", VLLM)[0] == 1
    assert strip[0] == "ixsearch" and run(*strip[1:])[0] == 0
    assert serve[:2] == ["vllm", "serve"] and serve[2] == strip[-1]
    assert Path(serve[-1]) == out / "overrides/vllm.yaml"
    assert run("validate", serve[-1], "--model", serve[2], "--engine", VLLM)[0] == 0
    sglang = shlex.split(said["serving"][1]["commands"][0])
    assert str(small / "model") in sglang
    assert read_model_config(small / "model").indexer_layers == (0, 1, 2, 3, 4)


def test_what_a_hub_model_and_the_bundled_one_are_called(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hub = served_model(Sources(model="org/some-model"), MODEL_FOLDER, Path("out"))
    assert hub.name == "org/some-model" and hub.stripped == tmp_path / "some-model-stripped"
    assert hub.out == tmp_path / "out"
    own = served_model(Sources(), MODEL_FOLDER, Path("out"))
    assert own.is_bundled and Path(own.name) == MODEL_FOLDER == own.folder
    assert own.stripped.parent == tmp_path
