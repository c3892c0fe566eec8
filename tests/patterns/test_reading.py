"""Each format: what is taken from it, and the places of what is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ixsearch.patterns.reading import Reading, read_anything

LETTERS = {"index_topk_pattern": "FFSS"}


def read(folder: Path, name: str, text: str) -> Reading:
    (folder / name).write_text(text)
    return read_anything(str(folder / name))


@pytest.mark.parametrize(
    ("text", "format", "engine", "overrides", "key", "letter"),
    [
        ("hf-overrides:\n  index_topk_pattern: FFSS\n", "vLLM", "vllm", LETTERS, "2:3", "2:25"),
        ("hf_overrides:\n  index_topk_pattern: 'FFSS'\n", "vLLM", "vllm", LETTERS, "2:3", "2:26"),
        ("hf-overrides: {index_topk_pattern: FFSS}", "vLLM", "vllm", LETTERS, "1:16", "1:38"),
        ("hf-overrides.index_topk_pattern: FFSS\n", "vLLM", "vllm", LETTERS, "1:1", "1:36"),
        ("a: 1\nhf_overrides.index_topk_pattern: FFSS", "vLLM", "vllm", LETTERS, "2:1", "2:36"),
        (
            'hf-overrides: \'{"index_topk_pattern": "FFSS"}\'',
            "vLLM",
            "vllm",
            LETTERS,
            "1:15",
            "1:15",
        ),
        (
            'json-model-override-args: \'{"index_topk_pattern": "FFSS"}\'',
            "SGLang",
            "sglang",
            LETTERS,
            "1:27",
            "1:27",
        ),
        (
            "model_kwargs: {index_topk_pattern: FFSS}",
            "TensorRT",
            "tensorrt-llm",
            LETTERS,
            "1:16",
            "1:38",
        ),
        ("FFSS\n", "letters", "", LETTERS, "1:1", "1:3"),
        ('"FFSS"\n', "letters", "", LETTERS, "1:1", "1:4"),
        (
            "hf-overrides:\n  text_config:\n    index_topk_pattern: FFSS\n",
            "vLLM",
            "vllm",
            {"text_config": LETTERS},
            "3:5",
            "3:27",
        ),
        (
            "hf-overrides.text_config.index_topk_pattern: FFSS\n",
            "vLLM",
            "vllm",
            {"text_config": LETTERS},
            "1:1",
            "1:48",
        ),
    ],
)
def test_yaml(
    tmp_path: Path, text: str, format: str, engine: str, overrides: object, key: str, letter: str
) -> None:
    found = read(tmp_path, "x.yaml", text)
    assert found.findings == ()
    assert found.format.startswith(format) and found.engine == engine
    assert found.overrides == overrides
    prefix = f"{tmp_path / 'x.yaml'}:"
    assert str(found.place("index_topk_pattern")).removeprefix(prefix) == key
    assert str(found.letter_place("index_topk_pattern", 2)).removeprefix(prefix) == letter


@pytest.mark.parametrize("name", ["x.json", "x", "x.txt"])
def test_json_of_overrides(tmp_path: Path, name: str) -> None:
    text = '{\n  "use_index_cache": true,\n  "index_topk_pattern":  "FFSS"\n}'
    found = read(tmp_path, name, text)
    assert found.format == "JSON of overrides" and found.findings == ()
    assert found.overrides == {"use_index_cache": True, **LETTERS}
    assert str(found.place("index_topk_pattern")).endswith(":3:3")
    assert str(found.letter_place("index_topk_pattern", 3)).endswith(":3:30")


def test_values_are_those_of_pyyaml(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    scalars = ["4", "04", "0o4", "4_0", "1:30", "1e-3", "1e3", "1.5", "no", "y", "~", "null"]
    scalars += [".inf", "2026-01-01", "FFSS", "0x1f", "+", "<"]
    text = "\n".join(f"  key{i}: {scalar}" for i, scalar in enumerate(scalars))
    found = read(tmp_path, "x.yaml", f"hf-overrides:\n  index_topk_pattern: FFSS\n{text}\n")
    wanted = yaml.safe_load(f"a:\n{text}\n")["a"]
    assert {k: found.overrides[k] for k in wanted} == wanted


def test_a_checkpoint_folder_and_its_parts(tmp_path: Path) -> None:
    config = {"architectures": ["X"], "num_hidden_layers": 4, **LETTERS}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_anything(str(tmp_path)).format == "config.json (HF)"
    index = {"weight_map": {"model.layers.1.self_attn.indexer.wk.weight": "a.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    for path in (tmp_path, tmp_path / "model.safetensors.index.json"):
        found = read_anything(str(path))
        assert found.format == "checkpoint folder" and found.config
        assert found.config.indexer_layers == (1,)
    assert read_anything(str(tmp_path / "config.json")).format == "config.json (HF)"


@pytest.mark.parametrize(
    ("text", "code", "place", "said"),
    [
        ("hf-override: {index_topk_pattern: FFSS}", "IX009", "1:1", "'hf-overrides'"),
        ("tensor-parallel-size: 8\n", "IX009", "1:1", "sets a pattern"),
        ("hf-overrides: [a]\n", "IX011", "1:15", "a list"),
        ("hf-overrides:\n", "IX011", "1:14", "nothing"),
        ("hf-overrides: '{'\n", "IX005", "1:15", "not valid JSON"),
        ('hf-overrides: \'{"a": 1, "a": 2}\'\n', "IX006", "1:15", "'a'"),
        ("json_model_override_args: '{\"index_topk_freq\": 2}'\n", "IX013", "1:1", "stops"),
        (
            "hf-overrides: {index_topk_pattern: FFSS}\nhf_overrides: {a: 1}",
            "IX305",
            "1:1",
            "is lost",
        ),
        ("hf-overrides: {index_topk_freq: 04}\n", "IX015", "1:33", "is 4 to PyYAML"),
        ("hf-overrides: {index_topk_freq: 1:30}\n", "IX015", "1:33", "is 90 to PyYAML"),
        ("hf-overrides: {index_topk_pattern: no}\n", "IX015", "1:36", "is False to PyYAML"),
        ("- a\n", "IX011", "1:1", "a list"),
        ("hf-overrides: {index_topk_patern: FFSS, index_topk_freq: 1}", "IX013", "1:16", "did you"),
    ],
)
def test_what_is_wrong_in_yaml(tmp_path: Path, text: str, code: str, place: str, said: str) -> None:
    found = read(tmp_path, "x.yaml", text)
    finding = next(f for f in found.findings if f.code == code)
    assert str(finding.place).endswith(f"x.yaml:{place}")
    assert said in f"{finding.message} {finding.mend}"


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("{'index_topk_freq': 2}", "IX005", "1:2"),
        ('{"index_topk_freq": 2,}', "IX005", "1:2"),
        ('{"index_topk_pattern": "FFSS",\n "index_topk_pattern": "FFSF"}', "IX006", "2:2"),
        ('{"index_topk_freqs": 2}', "IX013", "1:2"),
        ('["FFSS"]', "IX011", "1:1"),
        ("{}", "IX009", "1:1"),
        ("", "IX010", "1:1"),
    ],
)
def test_what_is_wrong_in_json(tmp_path: Path, text: str, code: str, place: str) -> None:
    found = read(tmp_path, "x.json", text)
    (finding,) = found.findings
    assert finding.code == code
    assert place == "1:2" or str(finding.place).endswith(f"x.json:{place}")


def test_bare_yaml_is_read_and_said_to_be_for_no_engine(tmp_path: Path) -> None:
    found = read(tmp_path, "x.yaml", "index_topk_pattern: FFSS\n")
    assert found.format == "YAML of overrides" and found.overrides == LETTERS
    (finding,) = found.findings
    assert (finding.code, finding.level) == ("IX009", "warning")


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        # As vLLM's own argument parser has them: the last plain key, else all dotted ones.
        ("hf-overrides: {a: 1}\nhf_overrides: {b: 2}\n", {"b": 2}),
        ("hf-overrides: {a: 1}\nhf-overrides.b: 2\n", {"b": 2}),
        ("hf-overrides.b: 2\nhf-overrides: {a: 1}\n", {"b": 2}),
        ("hf-overrides.a: 1\nhf_overrides.b: 2\n", {"a": 1, "b": 2}),
        ("hf-overrides:\n  a: 1\n  a: 2\n", {"a": 2}),
    ],
)
def test_of_several_places_those_count_that_count_in_the_engine(
    tmp_path: Path, text: str, overrides: dict[str, int]
) -> None:
    assert read(tmp_path, "x.yaml", text).overrides == overrides


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("--hf-overrides: {index_topk_pattern: FFSS}\n", "IX013"),
        ("json-model-override-args.index_topk_pattern: FFSS\n", "IX013"),
        ("hf-overrides.index_topk_pattern: [F, S]\n", "IX306"),
        ("hf-overrides.index_topk_freq: null\n", "IX306"),
        ("hf-overrides.use_index_cache: true\n", "IX306"),
    ],
)
def test_what_the_engine_refuses_is_an_error(tmp_path: Path, text: str, code: str) -> None:
    found = read(tmp_path, "x.yaml", text)
    assert [(f.code, f.level) for f in found.findings] == [(code, "error")]


def test_a_preset_is_read_by_its_name() -> None:
    found = read_anything("glm-5.2")
    assert found.format == "preset" and found.config
    assert found.config.default_pattern.num_full == 21
