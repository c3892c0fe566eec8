"""TensorRT-LLM: takes lower case, makes layer 0 full, and refuses a stage that starts shared."""

from __future__ import annotations

from ixsearch.patterns.dialects.dialect import (
    Dialect,
    Frequency,
    Letters,
    Odd,
    Raises,
    Split,
    Stage,
)

_TYPE_ERROR = Raises("TypeError", "at model construction")

ROWS = (
    Dialect(
        "tensorrt-llm",
        "TensorRT-LLM",
        versions="",
        label="of mid-2026",
        read_to="August 2026",
        sources=(
            "tensorrt_llm/llmapi/llm_args.py _is_full_indexer_layer, main of mid-2026",
            "NVIDIA/TensorRT-LLM pull request 15574",
        ),
        frequency=Frequency(
            offset=2, null=Odd.ONE, zero=Odd.ONE, negative=Odd.ONE, offset_null=_TYPE_ERROR
        ),
        letters=Letters(lower=Odd.FOLDED),
        stage=Stage.FAILS,
        split=Split.EARLIER,
        first_is_full=True,
        first_shared="it is made full, with a warning",
        bare_full="the weights fail to load (pull request 15574; not read in the code)",
    ),
)
