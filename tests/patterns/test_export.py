from __future__ import annotations

import json
import random
import shlex
from pathlib import Path

import pytest
import yaml

from ixsearch.patterns import (
    Export,
    IxsearchError,
    ModelIdentity,
    Pattern,
    PatternFile,
    default_pattern,
    write_overrides,
)

ARCHITECTURES = ["DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM"]
ODD_MODEL = '/models/it\'s a "model"; $(x) #1'


def cases() -> list[Export]:
    rng = random.Random(0)
    tails = ["".join(rng.choice("FS") for _ in range(rng.randrange(128))) for _ in range(60)]
    letters = ["F" + tail for tail in tails]
    return [Export(Pattern(p), a, "p.yaml", ODD_MODEL) for p in letters for a in ARCHITECTURES]


def test_vllm_yaml_loads_back_to_the_pattern() -> None:
    for export in cases():
        (key, overrides), *rest = yaml.safe_load(export.vllm_yaml()).items()
        assert key == "hf-overrides" and not rest
        assert overrides == {
            "use_index_cache": True,
            "index_topk_pattern": str(export.pattern),
        }


def test_sglang_yaml_holds_one_json_string_that_loads_back_to_the_pattern() -> None:
    for export in cases():
        (key, text), *rest = yaml.safe_load(export.sglang_yaml()).items()
        assert key == "json-model-override-args" and not rest
        assert isinstance(text, str)
        overrides = json.loads(text)
        assert overrides.pop("index_topk_pattern") == str(export.pattern)
        types = {"indexer_types": export.pattern.to_indexer_types()} if export.is_glm else {}
        assert overrides == types


def test_json_resolves_to_the_pattern_by_every_key() -> None:
    for export in cases():
        values = json.loads(export.hf_overrides_json())
        base = {"num_hidden_layers": len(export.pattern)}
        for key in {"index_topk_pattern", "indexer_types"} & values.keys():
            assert default_pattern({**base, key: values[key]}) == export.pattern
        assert values["use_index_cache"] is True
        assert ("indexer_types" in values) == export.is_glm


def test_commands_survive_the_shell() -> None:
    for export in cases():
        vllm, sglang = export.vllm_inline_command(), export.sglang_inline_command()
        *start, flag, text = shlex.split(vllm)
        assert start == ["vllm", "serve", ODD_MODEL] and flag == "--hf-overrides"
        assert json.loads(text) == export.vllm_overrides()
        *start, flag, text = shlex.split(sglang)
        assert start[-1] == ODD_MODEL and flag == "--json-model-override-args"
        assert json.loads(text) == export.sglang_overrides()
        assert shlex.split(export.vllm_command("a b.yaml"))[-2:] == ["--config", "a b.yaml"]
        assert shlex.split(export.sglang_command("a b.yaml"))[-2:] == ["--config", "a b.yaml"]


def test_the_head_says_which_pattern_which_model_and_how_to_use_it() -> None:
    export = Export(Pattern("FFSS"), "GlmMoeDsaForCausalLM", "p.yaml", "MODEL")
    for text, command in (
        (export.vllm_yaml(), "vllm serve MODEL --config vllm.yaml"),
        (export.sglang_yaml(), "--model-path MODEL --config sglang.yaml"),
    ):
        head = "\n".join(line for line in text.splitlines() if line.startswith("#"))
        assert "p.yaml" in head and "GlmMoeDsaForCausalLM, 4 layers" in head and command in head
    assert "indexer_types" in export.sglang_yaml().splitlines()[2]
    other = Export(Pattern("FFSS"), "DeepseekV32ForCausalLM")
    assert "indexer_types" not in other.sglang_yaml()


def test_a_name_cannot_break_out_of_its_comment() -> None:
    for evil in ("a\nhf-overrides: {}", "a\rb: 1", "a\u2028b: 1", "a\x85b: 1"):
        export = Export(Pattern("FS"), evil, evil, evil)
        assert list(yaml.safe_load(export.vllm_yaml())) == ["hf-overrides"]
        assert list(yaml.safe_load(export.sglang_yaml())) == ["json-model-override-args"]


def test_write_overrides(tmp_path: Path) -> None:
    file = PatternFile(Pattern("FFSS"), ModelIdentity("GlmMoeDsaForCausalLM", 4))
    paths = write_overrides(tmp_path / "a" / "overrides", file, source="best.yaml", model="/m")
    assert [path.name for path in paths] == ["vllm.yaml", "sglang.yaml", "hf_overrides.json"]
    export = Export.of(file, "best.yaml", "/m")
    texts = [export.vllm_yaml(), export.sglang_yaml(), export.hf_overrides_json()]
    assert [path.read_text() for path in paths] == texts
    (tmp_path / "file").touch()
    with pytest.raises(IxsearchError, match="cannot make the folder"):
        write_overrides(tmp_path / "file", file)
