"""How many layers of published models stay full in each engine, and which."""

from __future__ import annotations

import pytest

from ixsearch.patterns.dialects import resolve

from .dialect_keys import GLM, V32, freq

SPARSE_KEYS = [("vllm", "0.33.0"), ("sglang", "0.5.19"), ("tensorrt-llm", None)]


@pytest.mark.parametrize(("engine", "version"), SPARSE_KEYS)
@pytest.mark.parametrize(
    ("layers", "step", "full"),
    [(78, 2, 40), (61, 2, 31), (78, 4, 21), (61, 4, 16), (78, 8, 11), (61, 8, 9)],
)
def test_how_many_layers_stay_full(
    engine: str, version: str | None, layers: int, step: int, full: int
) -> None:
    config = {**V32, "num_hidden_layers": layers, **freq(step)}
    assert resolve(engine, version, config).letters.count("F") == full


GLM_5_2 = {**GLM, "num_hidden_layers": 78, **freq(4, 3)}


@pytest.mark.parametrize(
    ("engine", "version"), [*SPARSE_KEYS, ("sglang", "0.5.23"), ("transformers", "5.24.0")]
)
def test_glm_5_2_as_it_was_trained(engine: str, version: str | None) -> None:
    letters = resolve(engine, version, GLM_5_2).letters
    assert [i for i, letter in enumerate(letters) if letter == "F"] == [
        *(0, 1, 2, 6, 10, 14, 18, 22, 26, 30, 34),
        *(38, 42, 46, 50, 54, 58, 62, 66, 70, 74),
    ]


def test_glm_5_2_in_atom_is_another_model() -> None:
    letters = resolve("atom", "0.1.6", GLM_5_2).letters
    full = [i for i, letter in enumerate(letters) if letter == "F"]
    assert full[:6] == [0, 1, 2, 3, 7, 11] and len(full) == 22
