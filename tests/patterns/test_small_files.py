"""Small files that somebody made to hurt, and some that set nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ixsearch.patterns import Options, Stages

from .good_files import CONFIG
from .odd_inputs import BUNDLED
from .reports import codes_of

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
