"""vLLM: every layer looks itself up in the pattern; nothing is validated.

The rule changed once, in 0.23. What changed more often is which layers get an indexer, whether
spare weights load, and what an MTP layer does.
"""

from __future__ import annotations

from dataclasses import replace

from ixsearch.patterns.dialects.dialect import Dialect, Frequency, Mtp, Raises

_FILE = "vllm/model_executor/models/deepseek_v2.py"
_TYPE_ERROR = Raises("TypeError", "at model construction")
_KEY_ERROR = Raises("KeyError", "when the weights are loaded")
_POPPING = "5.6 to 5.10"

_NOTHING = Dialect(
    "vllm",
    "vLLM",
    versions=">=0.20,<0.21",
    label="0.20",
    read_to="0.20.2",
    sources=("vllm 0.20.0 and 0.20.2: no such key in the package",),
    reads=(),
)
_GATED = Dialect(
    "vllm",
    "vLLM",
    versions=">=0.21,<0.23",
    label="0.21-0.22",
    read_to="0.22.1",
    sources=(f"{_FILE}:1009-1019 of vllm 0.21.0 and 0.22.0", "vLLM pull request 37735"),
    switch=("use_index_cache",),
    writes=("use_index_cache", "index_topk_pattern"),
    frequency=Frequency(offset=2, reads_offset=False, null=_TYPE_ERROR),
    mtp=Mtp.BY_RULE,
    may_pop=_POPPING,
    first_shared="it reads a buffer that nobody has written, and answers with noise",
    bare_full="ValueError when the weights are loaded; with FP8 weights nothing, and random ones",
)
_OPEN = replace(
    _GATED,
    versions=">=0.23,<0.24",
    label="0.23",
    read_to="0.23.0",
    sources=(f"{_FILE}:1023-1034 of vllm 0.23.0", "vLLM pull request 45895"),
    switch=(),
    frequency=Frequency(offset=2, null=_TYPE_ERROR, offset_null=_TYPE_ERROR),
)
_SAFE_MTP = replace(
    _OPEN,
    versions=">=0.26,<0.29",
    label="0.26-0.28",
    read_to="0.28.0",
    sources=(f"{_FILE}:1082 of vllm 0.26.0", "vLLM pull request 46600 for the loader"),
    mtp=Mtp.FULL,
)

ROWS = (
    _NOTHING,
    _GATED,
    _OPEN,
    replace(
        _OPEN,
        versions=">=0.24,<0.25",
        label="0.24",
        read_to="0.24.0",
        sources=(f"{_FILE}:1006-1029 of vllm 0.24.0", "vLLM pull request 46600 for the loader"),
        spare_indexers=_KEY_ERROR,
    ),
    replace(
        _OPEN,
        versions=">=0.25,<0.26",
        label="0.25",
        read_to="0.25.1",
        sources=(f"{_FILE}:1083-1094 of vllm 0.25.0", "vLLM pull request 46600 for the loader"),
    ),
    _SAFE_MTP,
    replace(
        _SAFE_MTP,
        versions=">=0.29,<0.32",
        label="0.29-0.31",
        read_to="0.31.0",
        sources=(
            "vllm/models/deepseek_v32/attention.py of vllm 0.29.0 and 0.31.0",
            "vllm/models/deepseek_v32/nvidia/model.py for the loader; on ROCm only 0.31 is so",
        ),
        spare_indexers=_KEY_ERROR,
    ),
    replace(
        _SAFE_MTP,
        versions=">=0.32,<0.34",
        label="0.32-0.33",
        read_to="0.33.0",
        sources=(
            "vllm/models/deepseek_v32/attention.py:167-177 of vllm 0.33.0",
            "vllm/models/deepseek_v32/nvidia/model.py of vllm 0.33.0 for the loader",
        ),
        filled_by={"glm_moe_dsa": "5.16.1"},
        may_pop="",
        spare_indexers=_KEY_ERROR,
    ),
)
