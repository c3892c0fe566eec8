from __future__ import annotations

import json
import random
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ixsearch.patterns import (
    IxsearchError,
    ModelIdentity,
    Pattern,
    PatternFile,
    write_overrides,
)
from ixsearch.patterns.dialects import DIALECTS, newest, parse_engine
from ixsearch.patterns.dialects.table import find_dialect
from ixsearch.patterns.export import Export

DEEPSEEK = {"model_type": "deepseek_v32"}
GLM = {"model_type": "glm_moe_dsa"}
ODD_MODEL = '/models/it\'s a "model"; $(x) #1'
VLLM, SGLANG, TRT, ATOM = (newest(n) for n in ("vllm", "sglang", "tensorrt-llm", "atom"))


def patterns() -> Iterator[Pattern]:
    rng = random.Random(0)
    for _ in range(40):
        yield Pattern("F" + "".join(rng.choice("FS") for _ in range(rng.randrange(128))))


def test_vllm_yaml_loads_back_to_the_pattern() -> None:
    for pattern in patterns():
        export = Export(VLLM, pattern, GLM, "p.yaml", ODD_MODEL)
        said = yaml.safe_load(export.settings("vllm.yaml"))
        assert said == {
            "hf-overrides": {"use_index_cache": True, "index_topk_pattern": pattern.letters}
        }


def test_sglang_yaml_holds_one_json_string_that_loads_back_to_the_pattern() -> None:
    for pattern in patterns():
        for config in (GLM, DEEPSEEK):
            text = Export(SGLANG, pattern, config).settings("sglang.yaml")
            ((key, value),) = yaml.safe_load(text).items()
            assert key == "json-model-override-args" and isinstance(value, str)
            types = {"indexer_types": pattern.to_indexer_types()} if config is GLM else {}
            assert json.loads(value) == {"index_topk_pattern": pattern.letters, **types}


def test_tensorrt_llm_yaml() -> None:
    text = Export(TRT, Pattern("FFSS"), GLM).settings("t.yaml")
    assert yaml.safe_load(text) == {"model_kwargs": {"index_topk_pattern": "FFSS"}}


def test_a_version_that_does_not_read_types_gets_none() -> None:
    old = find_dialect(parse_engine("sglang==0.5.17"))
    assert Export(old, Pattern("FFSS"), GLM).overrides == {"index_topk_pattern": "FFSS"}


def test_no_export_ever_says_a_frequency() -> None:
    for row in DIALECTS:
        keys = Export(row, Pattern("FFSSSFSS"), GLM).overrides.keys()
        assert not keys & {"index_topk_freq", "index_skip_topk_offset"}


def test_keys_go_where_the_model_keeps_its_own() -> None:
    nested = {"model_type": "vision", "text_config": {**GLM, "num_hidden_layers": 2}}
    assert Export(VLLM, Pattern("FS"), nested).overrides == {
        "text_config": {"use_index_cache": True, "index_topk_pattern": "FS"}
    }


@pytest.mark.parametrize("row", [VLLM, SGLANG, ATOM], ids=lambda row: row.engine)
def test_commands_survive_the_shell(row) -> None:
    for pattern in patterns():
        export = Export(row, pattern, GLM, model=ODD_MODEL)
        *start, flag, text = shlex.split(export.command())
        assert ODD_MODEL in start and flag == export.launch.override_option
        assert json.loads(text) == export.overrides
    if export.launch.config_option:
        assert shlex.split(export.command("a b.yaml"))[-2:] == ["--config", "a b.yaml"]


def test_the_head_says_which_pattern_which_engine_and_how_to_use_it() -> None:
    for row, command in (
        (VLLM, "vllm serve MODEL --config x.yaml"),
        (SGLANG, "--model-path MODEL --config x.yaml"),
        (TRT, "trtllm-serve MODEL --extra_llm_api_options x.yaml"),
    ):
        text = Export(row, Pattern("FFSS"), GLM, "p.yaml").settings("x.yaml")
        head = "\n".join(line for line in text.splitlines() if line.startswith("#"))
        assert f"{row.name}: the pattern of p.yaml (4 layers, 2 F)" in head and command in head


def test_a_name_cannot_break_out_of_its_comment() -> None:
    for evil in ("a\nhf-overrides: {}", "a\rb: 1", "a\u2028b: 1", "a\x85b: 1"):
        for row, key in ((VLLM, "hf-overrides"), (SGLANG, "json-model-override-args")):
            text = Export(row, Pattern("FS"), GLM, evil, evil).settings("n.yaml")
            assert list(yaml.safe_load(text)) == [key]


def test_write_overrides(tmp_path: Path) -> None:
    file = PatternFile(Pattern("FFSS"), ModelIdentity("GlmMoeDsaForCausalLM", 4))
    folder = tmp_path / "a" / "overrides"
    written = write_overrides(folder, file, source="best.yaml", model="/m")
    assert [part.path.name for part in written if part.path] == ["vllm.yaml", "sglang.yaml"]
    for part in written:
        assert part.path and part.path.read_text() == part.export.settings(part.path.name)
    assert json.loads((folder / "hf_overrides.json").read_text()) == {
        "use_index_cache": True,
        "index_topk_pattern": "FFSS",
        "indexer_types": ["full", "full", "shared", "shared"],
    }
    (tmp_path / "file").touch()
    with pytest.raises(IxsearchError, match=r"cannot make the folder .*: give another place"):
        write_overrides(tmp_path / "file", file)


def test_several_versions_of_an_engine_get_a_file_each(tmp_path: Path) -> None:
    file = PatternFile(Pattern("FFSS"), ModelIdentity("GlmMoeDsaForCausalLM", 4))
    rows = [find_dialect(parse_engine(f"sglang=={v}")) for v in ("0.5.17", "0.5.23")]
    written = write_overrides(tmp_path, file, rows=rows)
    assert [p.path.name for p in written if p.path] == [
        "sglang-0.5.15-0.5.19.yaml",
        "sglang-0.5.20.yaml",
    ]
