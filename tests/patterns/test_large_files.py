"""Large files and patterns: a finding, in little time and memory."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ixsearch.cli.report_json import report_json
from ixsearch.cli.report_text import report_text
from ixsearch.cli.subject import check
from ixsearch.patterns import Options

from .good_files import CONFIG, GLM
from .large_json import JUST, filled, numbered
from .usage import MOST_SECONDS, took_little

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
    said = took_little(tmp_path, [f"./{name}", *options])
    assert said["findings"]


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


@pytest.mark.slow
def test_an_alias_bomb(tmp_path: Path) -> None:
    levels = zip("abcdefgh", "bcdefghi", strict=True)
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n"
    bomb += "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in levels)
    (tmp_path / "x.yaml").write_text(bomb + "hf-overrides: *i\n")
    said = took_little(tmp_path, ["x.yaml"])
    assert {finding["code"] for finding in said["findings"]} == {"IX007"}
