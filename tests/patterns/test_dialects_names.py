"""Names and versions of engines: how they are written, and which are known."""

from __future__ import annotations

import pytest

from ixsearch.patterns.dialects import EngineError, resolve

from .dialect_keys import FREQ_4, V32


@pytest.mark.parametrize(
    ("engine", "spellings"),
    [
        ("vllm", ("0.33", "0.33.0", "v0.33.0", "0.33.0rc1", "0.33.0+cu130", "0.33.0.post1")),
        ("sglang", ("0.5.10", "0.5.10.post1", "v0.5.10", "0.5.10rc0", "0.5.10.dev1+g1234")),
        ("transformers", ("5.24", "5.24.0", "v5.24.0", "5.24.0.dev0")),
        ("atom", ("0.1.6", "0.1.6rc0", "v0.1.6-rc0")),
    ],
)
def test_spellings_of_a_version(engine: str, spellings: tuple[str, ...]) -> None:
    found = {resolve(engine, spelling, V32).dialect for spelling in spellings}
    assert len(found) == 1


@pytest.mark.parametrize(
    ("before", "after", "engine"),
    [
        ("0.20.2", "0.21.0rc1", "vllm"),
        ("0.22.1", "0.23.0rc1", "vllm"),
        ("0.25.1", "0.26.0", "vllm"),
        ("0.5.12.post1", "0.5.13", "sglang"),
        ("0.5.19", "0.5.20", "sglang"),
        ("5.10.4", "5.11.0.dev0", "transformers"),
        ("0.1.5", "0.1.6rc0", "atom"),
    ],
)
def test_rows_end_where_the_rule_changed(before: str, after: str, engine: str) -> None:
    assert resolve(engine, before, V32).dialect != resolve(engine, after, V32).dialect


@pytest.mark.parametrize(
    ("engine", "version", "parts"),
    [
        ("vllm", "0.34", ("vllm==0.34", "not known", "0.32-0.33")),
        ("vllm", "0.19.1", ("vllm==0.19.1", "0.21-0.22")),
        ("vllm", "1.0", ("vllm==1.0", "0.32-0.33")),
        ("sglang", "0.5.8", ("sglang==0.5.8", "0.5.9")),
        ("sglang", "0.6.0", ("sglang==0.6.0", "0.5.20")),
        ("transformers", "5.5", ("transformers==5.5", "5.6-5.10")),
        ("transformers", "6.0", ("transformers==6.0", "5.11")),
        ("atom", "0.1.4", ("atom==0.1.4", "0.1.5")),
        ("vllm", None, ("vllm", "name a version", "0.23")),
        ("vllm", "latest", ("'latest'", "vllm==0.33.0")),
        ("vllm", "", ("NAME==VERSION",)),
        ("vllm", ">=0.33", ("vllm",)),
        ("vlm", "0.33.0", ("'vlm'", "did you mean vllm?")),
        ("sglan", "0.5.23", ("did you mean sglang?",)),
        ("llama.cpp", "1.0", ("'llama.cpp'", "vllm, sglang, transformers, tensorrt-llm, atom")),
        ("", "1.0", ("NAME==VERSION",)),
    ],
)
def test_what_is_not_in_the_table(engine: str, version: str | None, parts: tuple[str, ...]) -> None:
    with pytest.raises(EngineError) as error:
        resolve(engine, version, V32, FREQ_4)
    for part in parts:
        assert part in str(error.value)


def test_other_names_of_engines() -> None:
    assert resolve("VLLM", "0.33.0", V32).dialect.engine == "vllm"
    assert resolve("hf", "5.24.0", V32).dialect.engine == "transformers"
    for name in ("trtllm", "tensorrt_llm", "TensorRT-LLM"):
        assert resolve(name, None, V32).dialect.engine == "tensorrt-llm"


@pytest.mark.parametrize("spec", ["tensorrt-llm==1.3.0", "trtllm==0.1"])
def test_a_version_of_an_engine_that_is_known_by_date_is_unknown(spec: str) -> None:
    name, _, version = spec.partition("==")
    with pytest.raises(EngineError, match="is not known here"):
        resolve(name, version, V32)
