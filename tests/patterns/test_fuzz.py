"""Whatever `ixsearch validate` is given: findings with their places, never a traceback.

Random input through everything that the command does, in this process, and some of it through the
command itself; then inputs that somebody made to hurt, with the time and the memory that they take.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import ixsearch.bundled
from ixsearch.cli.app import app
from ixsearch.cli.report_json import report_json
from ixsearch.cli.report_text import report_text
from ixsearch.cli.subject import check
from ixsearch.patterns import (
    PRESETS,
    RULES,
    Options,
    Report,
    Stages,
    parse_engine,
    read_anything,
)
from ixsearch.patterns.dialects import DIALECTS, Split
from ixsearch.patterns.dialects.keys import PATTERN_KEYS
from ixsearch.patterns.stages import spread

QUICK = settings(
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
BUNDLED = str(Path(ixsearch.bundled.__file__).parent)
LONGEST_MESSAGE = 20_000

# ---------------------------------------------------------------------------------------- inputs

LETTERS = "FFSSFSSS"
CONFIG: dict[str, Any] = {
    "architectures": ["DeepseekV32ForCausalLM"],
    "model_type": "deepseek_v32",
    "num_hidden_layers": 8,
    "num_nextn_predict_layers": 1,
    "index_topk": 2048,
}
GLM = CONFIG | {"architectures": ["GlmMoeDsaForCausalLM"], "model_type": "glm_moe_dsa"}
TYPES = ["full" if letter == "F" else "shared" for letter in LETTERS]
NAMES = [f"model.layers.{i}.self_attn.indexer.wk.weight" for i in range(9)]
INDEX = json.dumps({"weight_map": dict.fromkeys(NAMES, "model-00001-of-00001.safetensors")})


def header(names: list[str]) -> bytes:
    parts = {name: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for name in names}
    data = json.dumps({"__metadata__": {"format": "pt"}} | parts).encode()
    return struct.pack("<Q", len(data)) + data


GOOD: dict[str, str] = {
    "pattern.yaml": """\
# a comment
schema: 1
pattern: "FFSSFSSS"

model:
  architecture: DeepseekV32ForCausalLM
  num_hidden_layers: 8
  model_type: deepseek_v32
  config_hash: "0123456789abcdef"
provenance:
  tool_version: "1.0.0"
  date: "2026-08-01"
  seed: 3
  documents:
    - {role: test, source: "a", count: 1, tokens: 20, digest: "b"}
  scores: {perplexity: 1.5, "retained share": 0.5}
""",
    "vllm.yaml": "hf-overrides:\n  use_index_cache: true\n  index_topk_pattern: FFSSFSSS\ntp: 1\n",
    "vllm_json.yaml": 'hf-overrides: \'{"index_topk_pattern": "FFSSFSSS", "rope_theta": 1e6}\'\n',
    "vllm_dotted.yaml": "model: x\nhf-overrides.index_topk_pattern: FFSSFSSS\n"
    "hf-overrides.text_config.index_topk_freq: 2\n",
    "vllm_underscore.yml": "hf_overrides: {text_config: {index_topk_freq: 4, model_type: x}}\n",
    "sglang.yaml": 'json-model-override-args: \'{"index_topk_pattern": "FFSSFSSS"}\'\ntp: 8\n',
    "sglang_map.yaml": "json_model_override_args:\n  indexer_types: [full, shared, full]\n",
    "tensorrt.yaml": "model_kwargs:\n  index_topk_pattern: 'FFSSFSSS'\n  text_config: {a: 1}\n",
    "bare.yaml": "index_topk_freq: 4\nindex_skip_topk_offset: 3\nuse_index_cache: yes\n",
    "letters.txt": "FFSSFSSS\n",
    "overrides.json": json.dumps(
        {"use_index_cache": True, "index_topk_pattern": LETTERS}, indent=1
    ),
    "types.json": json.dumps({"indexer_types": TYPES, "text_config": {"index_topk_freq": 2}}),
    "config.json": json.dumps(CONFIG | {"index_topk_freq": 4}, indent=2),
    "glm.json": json.dumps(GLM | {"indexer_types": TYPES, "index_topk_pattern": LETTERS}),
    "nested.json": json.dumps(
        {"architectures": ["A"], "text_config": GLM | {"index_topk_pattern": LETTERS}}, indent=2
    ),
}


@dataclass(frozen=True)
class Given:
    """An argument of `validate`, and the files that are there. `{}` stands for their folder."""

    argument: str
    files: dict[str, bytes] = field(default_factory=dict)
    model: str | None = None
    engines: tuple[str, ...] = ()
    stages: Stages | None = None
    mtp: bool = False


KEYS = st.sampled_from(
    [
        *PATTERN_KEYS,
        *PATTERN_KEYS,
        *[
            "hf-overrides",
            "hf_overrides",
            "--hf-overrides",
            "hf-overrides.index_topk_pattern",
            "hf-overrides.use_index_cache",
            "hf-overrides.text_config.index_topk_freq",
            "hf-overrides.text_config",
            "hf-overrides.text_config.a.b",
            "hf-overrides.",
            "hf-override",
            "model_kwargs",
            "model_kwargs.index_topk_freq",
            "json-model-override-args",
            "json_model_override_args",
            "json-model-override-args.indexer_types",
            "text_config",
            "schema",
            "pattern",
            "model",
            "provenance",
            "architecture",
            "num_hidden_layers",
            "model_type",
            "config_hash",
            "documents",
            "scores",
            "date",
            "seed",
            "count",
            "role",
            "architectures",
            "index_topk",
            "num_nextn_predict_layers",
            "index_topk_patern",
            "index-topk-pattern",
            "Index_TopK_Freq",
            "indexer_type",
            "use_index_cach",
            "index_topk_frequency",
            "weight_map",
            "y",
            "no",
            "1",
            "1e3",
            "<<",
            "~",
            "=",
            "2020-01-01",
        ],
        "",
        "a\nb",
        "\x1b[31m",
    ]
)
WORDS = st.one_of(
    st.text("FS", max_size=12).map(lambda tail: "F" + tail),
    st.text("FSfs ,xЅ\u200b", max_size=12),
    st.sampled_from(
        [
            *(
                [
                    "full",
                    "shared",
                    "FFSSFSSS",
                    "DeepseekV32ForCausalLM",
                    "GlmMoeDsaForCausalLM",
                    "glm_moe_dsa",
                ]
            ),
            *(
                [
                    "deepseek_v32",
                    "true",
                    "no",
                    "010",
                    "1:30",
                    "1e3",
                    "0x1F",
                    ".inf",
                    "...",
                    "---",
                    "-",
                    "?",
                    "=",
                    "<<",
                    "null",
                    "~",
                    "{}",
                    "[]",
                ]
            ),
            *("2020-01-01", "9999-12-31 23:59:59-23:59", "\ud800", "\u2028", "\x85", "\x1b", '"'),
            *(
                '{"index_topk_freq":4}',
                '{"text_config":5}',
                '{"text_config":{"index_topk_freq":2}}',
            ),
        ]
    ),
    st.text(max_size=20),
)
NUMBERS = st.one_of(
    st.integers(-3, 12),
    st.integers(-3, 12),
    st.sampled_from([8, 8, 10**5, 10**7, 2**64, -(2**64), 10**400, -(10**400), 10**4000]),
    st.floats(),
    st.sampled_from([math.inf, -math.inf, math.nan, -0.0, 2.5, 1e-320]),
)
DATES = st.one_of(
    st.dates(),
    st.datetimes(),
    st.just(datetime.datetime(9999, 12, 31, 23, 59, tzinfo=datetime.UTC)),
)
SCALARS = st.one_of(WORDS, NUMBERS, st.none(), st.booleans())


@st.composite
def documents(draw: st.DrawFn, dates: bool, depth: int = 3) -> Any:
    """A value of JSON, or with dates one of YAML."""
    kind = draw(st.sampled_from(["scalar", "scalar", "list", "types", "mapping", "flat"]))
    if kind == "scalar" or depth == 0:
        return draw(DATES if dates and draw(st.integers(0, 9)) == 0 else SCALARS)
    if kind == "types":
        return draw(st.lists(st.sampled_from(["full", "shared", "F", "S", 1, None]), max_size=9))
    inner = documents(dates, 0 if kind == "flat" else depth - 1)
    return draw(st.lists(inner, max_size=4) if kind == "list" else mappings(inner))


def mappings(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(KEYS, inner, min_size=1, max_size=5)


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    """Nearly a config.json, flat or nested."""
    values = dict(draw(st.sampled_from([CONFIG, GLM])))
    values |= draw(st.dictionaries(st.sampled_from([*PATTERN_KEYS, *CONFIG]), SCALARS, max_size=4))
    if draw(st.booleans()):
        values |= draw(mappings(documents(False)))
    if draw(st.booleans()):
        values["indexer_types"] = draw(st.lists(st.sampled_from(["full", "shared", "x", 1])))
    return {"architectures": ["A"], "text_config": values} if draw(st.booleans()) else values


@st.composite
def json_texts(draw: st.DrawFn) -> bytes:
    value = draw(st.one_of(documents(False), mappings(documents(False)), configs()))
    indent = draw(st.sampled_from([None, 1]))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=indent)
    return text.encode(errors="surrogatepass")


@st.composite
def yaml_texts(draw: st.DrawFn) -> bytes:
    value = draw(st.one_of(documents(True), mappings(documents(True))))
    text = yaml.dump(
        value,
        allow_unicode=draw(st.booleans()),
        default_flow_style=draw(st.sampled_from([None, True, False])),
        default_style=draw(st.sampled_from([None, None, '"', "'", "|"])),
        line_break=draw(st.sampled_from(["\n", "\r\n", "\r"])),
    )
    return text.encode(errors="surrogatepass")


PIECES = st.one_of(
    st.sampled_from(
        [
            *(b"\t", b"\x00", b": ", b"- ", b"[", b"]", b"{", b"}", b"&a ", b"*a", b"!!x ", b"'"),
            *(b'"', b"|\n", b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf", b"\xff", b"---\n", b"...\n"),
            *(b"# ", b",", b"null", b"yes", b"1e3", b"\xe2\x80\xa8", b"\xc2\x85", b"\\u0041"),
            *(b"\\ud800", b"\\e[31m", b"F", b"S", b"s", b"8", b".", b"text_config", b"<<: ", b"%"),
            *(b"indexer_types: [full]\n", b"index_topk_freq: 4\n", b'"index_topk_freq": null,'),
            *(b"9999-12-31 23:59:59-23:59", b"0001-01-01 00:00:00+23:59", b"1" * 4400, b"1e999"),
        ]
    ),
    st.binary(max_size=3),
)


@st.composite
def mutated(draw: st.DrawFn, good: bytes) -> bytes:
    data = bytearray(good)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        if draw(st.booleans()):
            data[at : at + draw(st.integers(0, 4))] = draw(PIECES)
        elif lines := bytes(data).splitlines(keepends=True):
            first = draw(st.integers(0, len(lines) - 1))
            count = draw(st.integers(0, 2))
            lines[first : first + 1] = [lines[first]] * count
            data = bytearray(b"".join(lines))
    return bytes(data)


@st.composite
def swapped_values(draw: st.DrawFn) -> bytes:
    """A good file, with one value of it put in the place of another kind of value."""
    text = draw(st.sampled_from(list(GOOD.values())))
    places = list(re.finditer(r'(?<=: )("[^"]*"|[\w.]+|\[[^\]]*\])', text))
    if not places:
        return text.encode()
    place = draw(st.sampled_from(places))
    value = draw(documents(False))
    new = json.dumps(value) if draw(st.booleans()) else str(draw(WORDS))
    return (text[: place.start()] + new + text[place.end() :]).encode(errors="surrogatepass")


MUTATED = st.sampled_from(list(GOOD.values())).flatmap(lambda text: mutated(text.encode()))
CONTENTS = st.one_of(
    MUTATED,
    MUTATED,
    swapped_values(),
    swapped_values(),
    json_texts(),
    json_texts(),
    yaml_texts(),
    yaml_texts(),
    st.text(max_size=60).map(str.encode),
    st.text("FSfs \n,", max_size=40).map(str.encode),
    st.binary(max_size=60),
)
FILE_NAMES = st.sampled_from(["x.yaml", "x.yml", "x.json", "x.txt", "x", "config.json"])
ARGUMENTS = st.one_of(
    st.text("FSfs", max_size=30),
    st.text("FSfs ,xЅ\u200b\0", max_size=12),
    st.text(max_size=30),
    st.text(st.characters(categories=["Cs", "Cc"]), max_size=4),
    st.sampled_from(["{}", "{}/", "{}/absent.yaml", "..", "/", "~", "pattern.yaml", "glm-5"]),
)
MODELS = st.one_of(
    st.none(),
    st.sampled_from([BUNDLED, *PRESETS]),
    st.just("{}/model"),
    st.sampled_from(["", "absent", "deepseek-v3", "{}", "{}/x.json", "a\0b", "x" * 5000, "\udcff"]),
)
ENGINES = st.lists(
    st.sampled_from(
        [
            *(row.engine for row in DIALECTS),
            *(f"{row.engine}=={row.read_to}" for row in DIALECTS if row.versions),
            *("vllm==0.99", "sglang==0.5.99", "vlm", "hf", "atom==1!2rc1", "tensorrt-llm==1"),
        ]
    ),
    max_size=3,
).map(tuple)
STAGES = st.one_of(
    st.none(),
    st.integers(1, 20).map(Stages),
    st.just(Stages(10**9)),
    st.lists(st.integers(-1, 9), min_size=1, max_size=5).map(Stages.of),
)


@st.composite
def checkpoints(draw: st.DrawFn) -> dict[str, bytes]:
    """A folder `model`, hardly ever all right."""
    config = json.dumps(draw(st.one_of(st.just(CONFIG), st.just(GLM), configs())))
    files = {"model/config.json": draw(mutated(config.encode()))}
    names = draw(st.lists(st.one_of(st.sampled_from(NAMES), st.text(max_size=9)), max_size=9))
    weights = draw(st.sampled_from(["none", "index", "header", "both"]))
    if weights in ("index", "both"):
        index = draw(st.sampled_from([INDEX, json.dumps({"weight_map": dict.fromkeys(names, 1)})]))
        files["model/model.safetensors.index.json"] = draw(mutated(index.encode()))
    if weights in ("header", "both"):
        files["model/model.safetensors"] = draw(mutated(header(names)))
    return files


@st.composite
def inputs(draw: st.DrawFn) -> Given:
    model = draw(MODELS)
    files = draw(checkpoints()) if model == "{}/model" else {}
    kind = draw(st.sampled_from(["file", "file", "file", "folder", "argument"]))
    if kind == "file":
        name = draw(FILE_NAMES)
        files[name] = draw(CONTENTS)
        argument = f"{{}}/{name}"
    elif kind == "folder":
        files |= draw(checkpoints())
        argument = "{}/model"
    else:
        argument = draw(ARGUMENTS)
    return Given(argument, files, model, draw(ENGINES), draw(STAGES), draw(st.booleans()))


# ------------------------------------------------------------------------------------ properties


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ixsearch-fuzz-"))
    yield folder
    shutil.rmtree(folder)


def laid_out(given: Given, scratch: Path) -> tuple[str, str | None]:
    """Its files written; its argument and its model, with the folder's name in them."""
    for entry in scratch.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for name, data in given.files.items():
        path = scratch / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    model = given.model
    return given.argument.replace("{}", str(scratch)), model and model.replace("{}", str(scratch))


def checked(given: Given, scratch: Path) -> Report:
    argument, model = laid_out(given, scratch)
    engines = tuple(parse_engine(name) for name in given.engines)
    report = check(argument, model, Options(engines, given.stages, given.mtp))
    holds(report)
    return report


def holds(report: Report) -> None:
    """What is so for every report."""
    for finding in report.findings:
        assert finding.code in RULES
        assert len(str(finding)) < LONGEST_MESSAGE, finding.code
        if finding.place and finding.place.line:
            within_its_file(finding.place.file, finding.place.line, finding.place.column)
    assert report.ok() == (not any(f.level == "error" for f in report.findings))
    assert report.ok() or not report.ok(strict=True)
    if report.ok():
        assert report.pattern is not None or any(f.level != "error" for f in report.findings)
    right_lengths(report)
    for strict in (False, True):
        is_printable(report_text(report, strict))
        said = json.dumps(report_json(report, strict))
        assert json.loads(said)["ok"] is report.ok(strict)


def right_lengths(report: Report) -> None:
    """What runs has a letter for each layer of the model."""
    file = report.reading.pattern_file
    if report.model:
        layers = report.model.num_hidden_layers
    elif file:
        layers = file.model.num_hidden_layers
    elif report.reading.portable or report.ok():
        layers = len(report.letters)
    else:
        return
    for run in report.runs:
        assert len(run.letters) == (0 if run.failure else layers), run


LINE = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


def within_its_file(file: str, line: int, column: int) -> None:
    """By the lines of YAML or by those of everybody else; one line more where the file ends."""
    data = Path(file.removesuffix(" (header)")).read_bytes()
    text = data[8 * file.endswith(" (header)") :].decode(errors="replace").removeprefix("\ufeff")
    kinds = ([*text.split("\n"), ""], [*LINE.split(text), ""])
    ends = [len(lines[line - 1]) + 1 for lines in kinds if line <= len(lines)]
    assert any(1 <= column <= end for end in ends), (line, column, text)


def is_printable(text: str) -> None:
    odd = [c for c in text if not c.isprintable() and c != "\n"]
    assert not odd, odd


def by_command(given: Given, scratch: Path) -> None:
    """As a person would: the same, twice, as text and as JSON."""
    argument, model = laid_out(given, scratch)
    options = ["--mtp"] if given.mtp else []
    options += [f"--model={model}"] if model is not None else []
    options += [f"--engine={name}" for name in given.engines]
    if given.stages and given.stages.sizes:
        options.append(f"--pp-partition={','.join(map(str, given.stages.sizes))}")
    elif given.stages:
        options.append(f"--pp={given.stages.count}")
    codes = []
    for form in ([], ["--json"]):
        result = CliRunner().invoke(app, ["validate", *options, *form, "--", argument])
        assert result.stderr == "", result.stderr
        codes.append(result.exit_code)
        if form:
            assert json.loads(result.stdout)["ok"] == (result.exit_code == 0)
        else:
            is_printable(result.stdout)
    assert codes in ([0, 0], [1, 1])


@settings(QUICK, max_examples=300)
@given(given=inputs())
def test_whatever_it_is_the_answer_is_findings(scratch: Path, given: Given) -> None:
    checked(given, scratch)


@settings(QUICK, max_examples=200)
@given(data=CONTENTS, name=FILE_NAMES)
def test_a_file_alone(scratch: Path, data: bytes, name: str) -> None:
    checked(Given(f"{{}}/{name}", {name: data}), scratch)


@settings(QUICK, max_examples=100)
@given(argument=ARGUMENTS, engines=ENGINES)
def test_an_argument_alone(scratch: Path, argument: str, engines: tuple[str, ...]) -> None:
    checked(Given(argument, engines=engines), scratch)


@settings(QUICK, max_examples=30)
@given(given=inputs())
def test_the_command_says_it_too(scratch: Path, given: Given) -> None:
    by_command(given, scratch)


@pytest.mark.slow
@settings(QUICK, derandomize=False, max_examples=20_000)
@given(given=inputs())
def test_twenty_thousand_inputs(scratch: Path, given: Given) -> None:
    checked(given, scratch)


@pytest.mark.parametrize("name", GOOD)
def test_the_good_files_are_read_to_the_end(scratch: Path, name: str) -> None:
    """So that the inputs above begin behind the first error."""
    report = checked(Given(f"{{}}/{name}", {name: GOOD[name].encode()}, "deepseek-v3.2"), scratch)
    assert report.written


PLAIN = st.one_of(
    WORDS,
    st.text("-.?:FS0179xobeE_+~=<>!%@`&*# ,[]{}\n", min_size=1, max_size=12),
    st.sampled_from(
        ["--- FFSS", "...", "- FS", "? FS", "-", "FS # no", "%FS", "010", "0o10", "1_0"]
    ),
)


@settings(QUICK, max_examples=300)
@given(key=st.sampled_from(PATTERN_KEYS), text=PLAIN, flow=st.booleans())
def test_values_are_those_that_pyyaml_makes(scratch: Path, key: str, text: str, flow: bool) -> None:
    """As the engines read the file; where nothing is said against it."""
    form = "hf-overrides: {%s: %s}\n" if flow else "hf-overrides:\n  %s: %s\n"
    path = scratch / "x.yaml"
    path.write_bytes((form % (key, text)).encode(errors="replace"))
    reading = read_anything(str(path))
    if any(finding.level == "error" for finding in reading.findings):
        return
    try:
        loaded = yaml.safe_load(path.read_bytes())["hf-overrides"]
    except yaml.YAMLError:
        return  # libyaml takes a little more than PyYAML's own parser
    assert repr(reading.overrides[key]) == repr(loaded[key])


# ------------------------------------------------------------------------- inputs made to hurt


def codes_of(
    argument: str | Path, model: str | None = None, options: Options | None = None
) -> set[str]:
    report = check(str(argument), model, options or Options())
    holds(report)
    return {finding.code for finding in report.findings}


@pytest.mark.parametrize("name", GOOD)
def test_line_ends_and_marks_make_no_difference(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(GOOD[name])
    said = codes_of(path)
    path.write_bytes(GOOD[name].replace("\n", "\r\n").encode())
    assert codes_of(path) == said
    path.write_bytes(GOOD[name].replace("\n", "\r").encode())
    codes_of(path)
    path.write_bytes(b"\xef\xbb\xbf" + GOOD[name].encode())
    assert codes_of(path) == ({"IX002"} if path.suffix == ".json" else said)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-32", "latin-1", "nul"])
def test_other_codings_are_told(tmp_path: Path, name: str, coding: str) -> None:
    text = GOOD[name] + "#\0" if coding == "nul" else GOOD[name] + "# é"
    (tmp_path / name).write_bytes(text.encode("utf-8" if coding == "nul" else coding))
    assert codes_of(tmp_path / name) == {"IX002"}


SMALL: dict[str, tuple[str, str]] = {
    "a date beyond the last": ("x.yaml", "index_topk_freq: 9999-12-31 23:59:59-23:59\n"),
    "a date before the first": ("x.yaml", "index_topk_freq: 0001-01-01 00:00:00+23:59\n"),
    "line separators": ("x.yaml", '? "\u2028"\n: "\u2029"\nindex_topk_pattern: FFSS\n'),
    "next lines": ("x.yaml", "# \x85\n# \x85\nindex_topk_pattern: FFSS\n"),
    "line ends of old": ("x.yaml", "hf-overrides:\r  index_topk_pattern: FFSS\r"),
    "text_config is a number": (
        "x.yaml",
        "hf-overrides: '{\"text_config\": 5}'\nhf-overrides.text_config.index_topk_freq: 2\n",
    ),
    "an escape in a key": ("x.yaml", '"hf-overrides.\\e[31m": true\n'),
    "an escape in a name": (
        "x.yaml",
        'schema: 1\npattern: FFSS\nmodel: {architecture: "\\e[31m", num_hidden_layers: 4}\n'
        'provenance: {tool_version: "1", date: "2", scores: {"\\e[2J": x}}\n',
    ),
    "a huge frequency": ("x.json", '{"index_topk_freq": 1%s}' % ("0" * 4000)),
    "more digits than Python takes": ("x.json", '{"index_topk_freq": 1%s}' % ("0" * 5000)),
    "an infinite frequency": ("x.json", '{"index_topk_freq": 1e999}'),
    "an infinite offset": ("x.json", '{"index_topk_freq": 2, "index_skip_topk_offset": -1e999}'),
    "a huge negative offset": (
        "x.json",
        '{"index_topk_freq": 2.5, "index_skip_topk_offset": -1%s}' % ("0" * 400),
    ),
    "half a character": (
        "x.json",
        '{"architectures": ["\\ud800"], "num_hidden_layers": 4, "index_topk": 3}',
    ),
    "an escape in an architecture": (
        "x.json",
        '{"architectures": ["\\u001b[31m\\n"], "num_hidden_layers": 4, "index_topk": 3}',
    ),
    "a long trap": ("x.yaml", f"index_topk_pattern: {'1' * 100_000}\n"),
    "a long key": ("x.yaml", f"index_topk_pattern: FS\nindex_topk_freq{'x' * 100_000}: 1\n"),
}


@pytest.mark.parametrize("case", SMALL)
@pytest.mark.parametrize("model", [None, "glm-5", BUNDLED, "self"])
def test_small_files_that_hurt(tmp_path: Path, case: str, model: str | None) -> None:
    name, text = SMALL[case]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    codes_of(path, str(path) if model == "self" else model, Options(stages=Stages(3)))


@pytest.mark.parametrize("depth", [*range(900, 1000, 7), 5000])
@pytest.mark.parametrize("key", ["x", "index_topk_pattern", "index_topk_freq", "num_hidden_layers"])
def test_depth_near_the_limit_of_python(tmp_path: Path, key: str, depth: int) -> None:
    text = json.dumps(CONFIG | {key: 1}).replace(
        f'"{key}": 1', f'"{key}": {"[" * depth}{"]" * depth}'
    )
    (tmp_path / "config.json").write_text(text)
    codes_of(tmp_path)


@pytest.mark.parametrize("key", ["index_topk_freq", "index_topk_pattern", "indexer_types"])
@pytest.mark.parametrize("model", ["deepseek-v3.2", BUNDLED])
def test_nothing_set_is_said(tmp_path: Path, key: str, model: str) -> None:
    for text in (
        f'{{"{key}": null}}',
        '{"use_index_cache": true}',
        '{"index_skip_topk_offset": 3}',
    ):
        (tmp_path / "x.json").write_text(text)
        assert codes_of(tmp_path / "x.json", model), text


@pytest.mark.parametrize("split", Split)
def test_every_split_adds_up(split: Split) -> None:
    for layers in range(1, 20):
        for stages in range(1, layers + 1):
            sizes = spread(layers, stages, split)
            assert sum(sizes) == layers and len(sizes) == stages and min(sizes) >= 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
@pytest.mark.parametrize(
    "name", ["x.yaml", "x", "config.json", "model.safetensors.index.json", "model.safetensors"]
)
def test_pipes_and_devices_do_not_hang(tmp_path: Path, name: str) -> None:
    for kind in ("pipe", "device"):
        folder = tmp_path / kind
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(CONFIG))
        (folder / name).unlink(missing_ok=True)
        if kind == "pipe":
            os.mkfifo(folder / name)
        else:
            (folder / name).symlink_to("/dev/zero")
        argument = folder if "." in name and "yaml" not in name else folder / name
        said, _, _ = used(tmp_path, [str(argument), "--model", str(argument)])
        assert {finding["code"] for finding in said["findings"]} & {"IX001", "IX215"}


def test_loops_of_links(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "config.json").symlink_to(tmp_path / "folder")
    for path in (tmp_path / "a", tmp_path / "a" / "x.yaml", tmp_path / "folder"):
        assert "IX001" in codes_of(path)
        assert codes_of(LETTERS, str(path)) & {"IX001", "IX215"}


@pytest.mark.parametrize(
    "name", ["x" * 300, "x" * 300 + ".yaml", "a/" * 3000, "\udcff.yaml", "a\0"]
)
def test_names_that_no_file_has(name: str) -> None:
    codes_of(name)
    assert codes_of(LETTERS, name) & {"IX001", "IX215"}


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="permissions of POSIX")
def test_what_may_not_be_read() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "closed").mkdir()
        (folder / "closed" / "config.json").write_text(json.dumps(CONFIG))
        (folder / "x.yaml").write_text(GOOD["vllm.yaml"])
        for path in (folder / "closed", folder / "x.yaml"):
            path.chmod(0)
        folder.chmod(0o755)
        with nobody():
            for path in (folder / "x.yaml", folder / "closed", folder / "closed" / "config.json"):
                assert "IX001" in codes_of(path)
                assert codes_of(LETTERS, str(path)) & {"IX001", "IX215"}
    finally:
        (folder / "closed").chmod(0o700)
        shutil.rmtree(folder)


@contextmanager
def nobody() -> Iterator[None]:
    """Not as root, who may read everything."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.mark.slow
@pytest.mark.parametrize(
    "letters",
    [
        "F" * 1_000_000,
        "FS" * 500_000,
        "fs" * 500_000,
        " " * 1_000_000,
        "".join(map(chr, range(0x20, 0xD800))) * 18,
        "F" * 1_000_000 + "/",
        "F" * 100_000,
    ],
    ids=["F", "FS", "fs", "blank", "unicode", "path", "100,000 F"],
)
@pytest.mark.parametrize("model", [None, "glm-5"])
def test_a_megabyte_of_letters(letters: str, model: str | None) -> None:
    start = time.process_time()
    report = check(letters, model, Options())
    checked_in = time.process_time() - start
    assert report.findings
    for told in (report_text, report_json):
        start = time.process_time()
        json.dumps(told(report, False))
        assert checked_in + time.process_time() - start < MOST_SECONDS


# ------------------------------------------------------------------------------ time and memory

MOST_SECONDS = 2
MOST_BYTES = 500e6
CHILD = """
import json, resource, sys, time
resource.setrlimit(resource.RLIMIT_CPU, (6, 6))
from ixsearch.cli import main
try:
    main()
finally:
    try:
        lines = open("/proc/self/status").read().splitlines()
        peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.flush()
    print(json.dumps([time.process_time(), peak * 1024]), file=sys.stderr)
"""


def used(folder: Path, arguments: list[str]) -> tuple[dict[str, Any], float, float]:
    """What `validate --json` says, and the seconds and bytes that the whole command took.

    The peak of `getrusage` would be that of this process, where it is the larger one.
    """
    command = [sys.executable, "-c", CHILD, "validate", "--json", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=20)
    assert done.returncode in (0, 1), (done.returncode, done.stderr[-2000:])
    figures, *rest = reversed(done.stderr.decode().splitlines())
    assert not rest, rest
    said = json.loads(done.stdout)
    assert said["ok"] is (done.returncode == 0)
    return said, *json.loads(figures)


JUST = (2 << 20) - 500
"""So much JSON is read."""


def filled(start: str, part: str, end: str, size: int = JUST) -> str:
    """JSON with as many of `part` as `size` takes."""
    return start + ",".join([part] * (size // (len(part) + 1))) + end


def numbered(start: str, part: str, end: str, size: int = JUST) -> str:
    return start + ",".join(part % i for i in range(size // (len(part) + 6))) + end


BIG: dict[str, tuple[str, Callable[[], str]]] = {
    "50 MB of YAML": ("x.yaml", lambda: "key: 1\n" * 7_000_000),
    "50 MB of JSON": ("x.json", lambda: filled('{"x": [', "1", "]}", 50 << 20)),
    "50 MB of letters": ("x.txt", lambda: "FSSS" * (12 << 20)),
    "50 MB without a name": ("x", lambda: "{" * (50 << 20)),
    "50 MB of config": ("config.json", lambda: filled('{"x": [', "1", "]}", 50 << 20)),
    "1 MB of letters": ("x.txt", lambda: "FSSS" * 250_000),
    "1 MB of traps": ("x.yaml", lambda: "index_topk_pattern: [" + "1e3, " * 9_900 + "]\n"),
    "1 MB of keys": ("x.yaml", lambda: "".join(f"index_topk_frq{i}: 1\n" for i in range(4_900))),
    "1 MB of anchors": ("x.yaml", lambda: "[" + "&a 1," * 9_900 + "]\n"),
    "1 MB of one scalar": ("x.yaml", lambda: "index_topk_freq: " + "1:" * 500_000 + "1\n"),
    "deep YAML": ("x.yaml", lambda: "[" * 1_000_000),
    "deep block YAML": ("x.yaml", lambda: "- " * 500_000),
    "deep JSON": ("x.json", lambda: "[" * JUST),
    "deep objects": ("x.json", lambda: '{"a":' * (JUST // 5)),
    "empty objects": ("x.json", lambda: filled('{"index_topk_freq":4,"x":[', "{}", "]}")),
    "small objects": ("x.json", lambda: filled('{"index_topk_freq":4,"x":[', '{"":[]}', "]}")),
    "one key for ever": ("x.json", lambda: filled("{", '"index_topk_freq":1', "}")),
    "one key, in objects": ("x.json", lambda: filled('{"x":[', '{"a":1,"a":1}', "]}")),
    "many keys": ("x.json", lambda: numbered("{", '"%06d":1', "}")),
    "many near misses": ("x.json", lambda: numbered("{", '"index_topk_freq%06d":1', "}")),
    "long types": ("x.json", lambda: filled('{"indexer_types":[', '"full"', "]}")),
    "long wrong types": ("x.json", lambda: filled('{"indexer_types":[', "0", "]}")),
    "long letters": ("x.json", lambda: '{"index_topk_pattern": "' + "F" * JUST + '"}'),
    "long wrong letters": (
        "x.json",
        lambda: '{"index_topk_pattern": "' + "fsx " * (JUST // 4) + '"}',
    ),
    "a JSON string in YAML": (
        "x.yaml",
        lambda: "hf-overrides: '" + filled("{", '"index_topk_freq1":1', "}", 1_000_000) + "'\n",
    ),
    "config of small objects": (
        "config.json",
        lambda: filled(json.dumps(CONFIG)[:-1] + ',"x":[', '{"":[]}', "]}"),
    ),
    "10,000,000 layers": ("config.json", lambda: json.dumps(CONFIG | {"num_hidden_layers": 10**7})),
    "100,000 layers": ("config.json", lambda: json.dumps(CONFIG | {"num_hidden_layers": 10**5})),
    "100,000 layers, by frequency": (
        "config.json",
        lambda: json.dumps(GLM | {"num_hidden_layers": 10**5, "index_topk_freq": 4}),
    ),
    "10,000 layers, by frequency": (
        "config.json",
        lambda: json.dumps(GLM | {"num_hidden_layers": 10**4, "index_topk_freq": 4}),
    ),
    "100,000 MTP layers": (
        "config.json",
        lambda: json.dumps(CONFIG | {"num_nextn_predict_layers": 10**5}),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--engine=vllm", "--engine=sglang", "--mtp", "--pp=3"]])
@pytest.mark.parametrize("case", BIG)
def test_large_files_take_little(tmp_path: Path, case: str, options: list[str]) -> None:
    name, text = BIG[case]
    (tmp_path / name).write_text(text())
    said, seconds, peak = used(tmp_path, [f"./{name}", *options])
    assert said["findings"]
    assert seconds < MOST_SECONDS and peak < MOST_BYTES, (seconds, peak)


@pytest.mark.slow
def test_large_models_take_little(tmp_path: Path) -> None:
    """What makes a large file as a pattern, makes one as a model."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": 10**5}))
    for letters in ("FFSS", "F" * 100_000, "F" + "S" * 99_999):
        _, seconds, peak = used(tmp_path, [letters, "--model=config.json", "--pp=7"])
        assert seconds < MOST_SECONDS and peak < MOST_BYTES, (seconds, peak)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("index", 400_000), ("header", 100_000)])
def test_a_checkpoint_of_many_tensors(tmp_path: Path, kind: str, count: int) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    names = [f"model.layers.{i % 8}.self_attn.indexer.experts.{i:07}.weight" for i in range(count)]
    if kind == "index":
        index = json.dumps(
            {"weight_map": dict.fromkeys(names, "model-00001-of-000163.safetensors")}
        )
        assert len(index) > 36_000_000
        (tmp_path / "model.safetensors.index.json").write_text(index)
    else:
        (tmp_path / "model.safetensors").write_bytes(header(names))
    for arguments in (["."], [LETTERS, "--model=."]):
        said, seconds, peak = used(tmp_path, arguments)
        assert said["model"]["indexer_layers"] == list(range(8))
        assert seconds < MOST_SECONDS and peak < MOST_BYTES, (seconds, peak)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["{}", '{"":[]}', "[", '"k"'])
@pytest.mark.parametrize("kind", ["index", "header"])
def test_a_hostile_checkpoint_takes_little(tmp_path: Path, kind: str, part: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    text = filled('{"weight_map":[', part, "]}", 90_000_000)
    if kind == "index":
        (tmp_path / "model.safetensors.index.json").write_text(text)
    else:
        data = struct.pack("<Q", len(text)) + text.encode()
        (tmp_path / "model.safetensors").write_bytes(data)
    _, seconds, peak = used(tmp_path, ["."])
    assert seconds < MOST_SECONDS and peak < MOST_BYTES, (seconds, peak)


@pytest.mark.slow
def test_an_alias_bomb(tmp_path: Path) -> None:
    levels = zip("abcdefgh", "bcdefghi", strict=True)
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n"
    bomb += "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in levels)
    (tmp_path / "x.yaml").write_text(bomb + "hf-overrides: *i\n")
    said, seconds, peak = used(tmp_path, ["x.yaml"])
    assert {finding["code"] for finding in said["findings"]} == {"IX007"}
    assert seconds < MOST_SECONDS and peak < MOST_BYTES, (seconds, peak)
