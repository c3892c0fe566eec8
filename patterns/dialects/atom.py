"""ATOM: behind a switch, and counting its offset one layer later than all others."""

from __future__ import annotations

from dataclasses import replace

from ixsearch.patterns.dialects.dialect import Dialect, Frequency, Mtp, Raises, Stage

_TYPE_ERROR = Raises("TypeError", "at model construction")
_VALUE_ERROR = Raises("ValueError", "at model construction")

_LATER = Dialect(
    "atom",
    "ATOM",
    versions=">=0.1.6,<0.2",
    label="0.1.6 (main of August 2026)",
    read_to="0.1.6",
    sources=(
        "atom/models/deepseek_v2.py:357-399 of ROCm/ATOM ffdf3bb5, 2026-08-22",
        "ROCm/ATOM pull request 1260",
    ),
    reads=("indexer_types", "index_topk_pattern", "index_topk_freq"),
    switch=("use_index_cache", "index_topk_freq"),
    writes=("use_index_cache", "index_topk_pattern", "indexer_types"),
    frequency=Frequency(
        offset=1,
        shift=0,
        null=_TYPE_ERROR,
        zero=_VALUE_ERROR,
        negative=_VALUE_ERROR,
        offset_null=_TYPE_ERROR,
        whole=True,
    ),
    stage=Stage.CARRIED,
    bare_full="a warning",
)

ROWS = (
    replace(
        _LATER,
        versions=">=0.1.5,<0.1.6",
        label="0.1.5",
        read_to="0.1.5",
        sources=("atom/models/deepseek_v2.py of ROCm/ATOM v0.1.5", "ROCm/ATOM pull request 1080"),
        reads=("index_topk_pattern", "index_topk_freq"),
        switch=("use_index_cache",),
        writes=("use_index_cache", "index_topk_pattern"),
        frequency=Frequency(
            offset=1,
            shift=0,
            reads_offset=False,
            null=_TYPE_ERROR,
            zero=_VALUE_ERROR,
            negative=_VALUE_ERROR,
            whole=True,
        ),
        mtp=Mtp.BY_RULE,
        stage=Stage.NONE,
    ),
    _LATER,
)
