"""What is written for an engine, read back, runs the very pattern in that engine."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from ixsearch.cli.app import app
from ixsearch.patterns import (
    Export,
    ModelIdentity,
    Options,
    Pattern,
    PatternFile,
    Reading,
    dump_pattern_file,
    lint,
    read_anything,
    read_model_config,
)
from ixsearch.patterns.config_patch import patched_config
from ixsearch.patterns.dialects import DIALECTS, Dialect, EngineSpec, model_values, resolve_in
from ixsearch.patterns.export import LAUNCHES, write_exports

from .quick import QUICK

ARCHITECTURES = {"deepseek_v32": "DeepseekV32ForCausalLM", "glm_moe_dsa": "GlmMoeDsaForCausalLM"}

PATTERNS = st.text("FS", max_size=127).map(lambda tail: Pattern("F" + tail))
MODEL_NAMES = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
    st.sampled_from(
        [
            '/models/it\'s a "model"; $(x) #1',
            "a\nhf-overrides: {}",
            "a\rb: 1",
            "$HOME/`id`/*?[a]{b,c}",
            "a\u2028b: 1\x85c: 2",
            "back\\slash\\",
            "--flag",
            " ",
        ]
    ),
).filter(lambda name: name != "MODEL")


@st.composite
def models(draw: st.DrawFn, nested: bool | None = None) -> tuple[Pattern, dict[str, Any]]:
    """A pattern, and a config.json that it fits; which may have a pattern of its own."""
    pattern = draw(PATTERNS)
    kind = draw(st.sampled_from(list(ARCHITECTURES)))
    values: dict[str, Any] = {
        "model_type": kind,
        "num_hidden_layers": len(pattern),
        "num_nextn_predict_layers": draw(st.integers(0, 2)),
        "index_topk": 2048,
    }
    names = {"architectures": [ARCHITECTURES[kind]]}
    old = st.text("FS", min_size=len(pattern), max_size=len(pattern))
    values |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "index_topk_pattern": st.one_of(st.none(), old),
                "index_topk_freq": st.integers(1, 9),
                "index_skip_topk_offset": st.integers(1, 9),
                "use_index_cache": st.booleans(),
                "indexer_types": old.map(lambda t: ["full" if c == "F" else "shared" for c in t]),
            },
        )
    )
    if not (draw(st.booleans()) if nested is None else nested):
        return pattern, names | values
    values["model_type"] = draw(st.sampled_from([*ARCHITECTURES, "glm_next_text", ""]))
    return pattern, names | {"model_type": "some_vl", "text_config": values}


def can_share(row: Dialect, config: dict[str, Any]) -> bool:
    kind = str(model_values(config).get("model_type", ""))
    return bool(row.reads) and (not row.only_types or kind in row.only_types)


def sharing(config: dict[str, Any]) -> list[Dialect]:
    return [row for row in DIALECTS if can_share(row, config)]


def runs(row: Dialect, config: dict[str, Any], overrides: Any) -> str:
    run = resolve_in(row, config, overrides)
    return f"{row.name}: {run.failure or run.letters}"


def wanted(row: Dialect, pattern: Pattern) -> str:
    return f"{row.name}: {pattern}"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ixsearch-round-") as name:
        yield Path(name)


def read(path: Path, text: str) -> Reading:
    path.write_text(text, encoding="utf-8", newline="")
    reading = read_anything(str(path))
    assert reading.findings == ()
    return reading


def test_rows_that_cannot_share_are_the_old_ones() -> None:
    """So that `can_share` leaves nothing out by mistake."""
    deepseek, glm = ({"model_type": kind, "num_hidden_layers": 4} for kind in ARCHITECTURES)
    old = {"vLLM 0.20", "SGLang 0.5.9"}
    assert {row.name for row in DIALECTS if not can_share(row, glm)} == old
    by_class = {row.name for row in DIALECTS if row.engine == "transformers"}
    assert {row.name for row in DIALECTS if not can_share(row, deepseek)} == old | by_class


@QUICK
@given(model=models(), name=MODEL_NAMES, source=MODEL_NAMES)
def test_the_settings_file_of_every_row(
    folder: Path, model: tuple[Pattern, dict[str, Any]], name: str, source: str
) -> None:
    pattern, config = model
    for row in sharing(config):
        export = Export(row, pattern, config, source, name)
        text = export.settings(f"{row.engine}.yaml")
        launch = LAUNCHES.get(row.engine)
        if launch is None or not launch.yaml_key:
            assert text == ""
            assert runs(row, config, export.overrides) == wanted(row, pattern)
            continue
        loaded = yaml.safe_load(text)
        assert list(loaded) == [launch.yaml_key]
        carried = loaded[launch.yaml_key]
        assert (json.loads(carried) if launch.as_string else carried) == export.overrides
        assert runs(row, config, export.overrides) == wanted(row, pattern)
        reading = read(folder / f"{row.engine}.yaml", text)
        assert (reading.engine, reading.mapping) == (row.engine, not launch.as_string)
        assert dict(reading.overrides) == export.overrides
        assert runs(row, config, reading.overrides) == wanted(row, pattern)


@QUICK
@given(model=models(), data=st.data())
def test_the_json_of_some_rows_together(
    folder: Path, model: tuple[Pattern, dict[str, Any]], data: st.DataObject
) -> None:
    """In whatever order they were asked for."""
    pattern, config = model
    rows = data.draw(st.lists(st.sampled_from(sharing(config)), min_size=1, max_size=4))
    write_exports(folder, [Export(row, pattern, config) for row in rows])
    reading = read_anything(str(folder / "hf_overrides.json"))
    assert reading.findings == ()
    for row in rows:
        assert runs(row, config, reading.overrides) == wanted(row, pattern)


@QUICK
@given(model=models())
def test_the_patched_config_of_every_row(
    folder: Path, model: tuple[Pattern, dict[str, Any]]
) -> None:
    pattern, config = model
    patched = patched_config(config, pattern)
    path = folder / "config.json"
    path.write_text(json.dumps(patched))
    assert read_model_config(path).default_pattern == pattern
    for row in sharing(config):
        assert runs(row, patched, {}) == wanted(row, pattern)


@QUICK
@given(model=models(), name=MODEL_NAMES, config_name=MODEL_NAMES)
def test_commands_survive_the_shell(
    model: tuple[Pattern, dict[str, Any]], name: str, config_name: str
) -> None:
    pattern, config = model
    for row in sharing(config):
        export = Export(row, pattern, config, "p.yaml", name)
        launch = LAUNCHES.get(row.engine)
        if launch is None:
            assert export.command() == export.command(config_name) == ""
            continue
        argv = [name if word == "MODEL" else word for word in launch.argv]
        if launch.override_option:
            *start, option, text = shlex.split(export.command())
            assert start == argv and option == launch.override_option
            assert json.loads(text) == export.overrides
        else:
            assert export.command() == ""
        if launch.config_option:
            with_file = shlex.split(export.command(config_name))
            assert with_file == [*argv, launch.config_option, config_name]


@QUICK
@given(model=models(nested=False))
def test_a_pattern_file_lints_to_it_in_every_row(
    folder: Path, model: tuple[Pattern, dict[str, Any]]
) -> None:
    """Letters and pattern files are spelled for each engine by the check itself."""
    pattern, config = model
    (folder / "config.json").write_text(json.dumps(config))
    identity = ModelIdentity(config["architectures"][0], len(pattern), config["model_type"])
    text = dump_pattern_file(PatternFile(pattern, identity))
    reading = read(folder / "pattern.yaml", text)
    specs = tuple(dict.fromkeys(EngineSpec(row.engine) for row in DIALECTS))
    for known in (None, read_model_config(folder / "config.json")):
        report = lint(reading, known, Options(specs))
        assert report.pattern == pattern
        for run in report.runs:
            if can_share(run.dialect, config):
                assert f"{run.dialect.name}: {run.failure or run.letters}" == wanted(
                    run.dialect, pattern
                )


# ------------------------------------------------------------------------------ by the command


def asked(row: Dialect) -> str:
    return f"{row.engine}=={row.read_to}" if row.versions else row.engine


def command(*arguments: str | Path) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.stderr == "" and result.exit_code in (0, 1), result.stderr
    return json.loads(result.stdout)


@settings(QUICK, max_examples=4)
@given(model=models())
def test_what_export_writes_validate_reads(
    folder: Path, model: tuple[Pattern, dict[str, Any]]
) -> None:
    pattern, config = model
    name = folder / "model" / "config.json"
    name.parent.mkdir(exist_ok=True)
    name.write_text(json.dumps(config))
    source = folder / "letters.txt"
    source.write_text(str(pattern))
    for row in sharing(config):
        out = folder / "out"
        said = command("export", source, "--out", out, "--model", name, "--engine", asked(row))
        files = [out / "hf_overrides.json"]
        files += [Path(part["file"]) for part in said["engines"] if part["file"]]
        for path in files:
            resolves(
                command("validate", path, "--model", name, "--engine", asked(row)), row, pattern
            )
        resolves(command("validate", out / "config.json", "--engine", asked(row)), row, pattern)


def resolves(said: dict[str, Any], row: Dialect, pattern: Pattern) -> None:
    assert said["pattern"] == str(pattern), said["findings"]
    (run,) = said["engines"]
    assert (run["versions"], run["pattern"]) == (row.label, str(pattern))
    assert not [f for f in said["findings"] if f["level"] == "error" and f["code"] < "IX2"]


@pytest.mark.slow
@settings(QUICK, max_examples=100)
@given(model=models(), serve=MODEL_NAMES)
def test_all_engines_at_once(
    folder: Path, model: tuple[Pattern, dict[str, Any]], serve: str
) -> None:
    """Every row of an engine gets a file of its own."""
    pattern, config = model
    name = folder / "config.json"
    name.write_text(json.dumps(config))
    engines = [f"--engine={name}" for name in LAUNCHES]
    out = folder / "all"
    said = command(
        "export", str(pattern), "--out", out, f"--model={name}", f"--serve={serve}", *engines
    )
    files = [part["file"] for part in said["engines"] if part["file"]]
    assert len(set(files)) == len(files)
    for part in said["engines"]:
        row = next(r for r in DIALECTS if (r.engine, r.label) == (part["engine"], part["versions"]))
        if part["file"] and can_share(row, config):
            back = command("validate", part["file"], "--model", name, "--engine", asked(row))
            resolves(back, row, pattern)
