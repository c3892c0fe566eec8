"""transformers: the configuration class of GLM models turns every spelling into types.

Keyword arguments of `from_pretrained` arrive after that, so of overrides only `indexer_types`
counts.
"""

from __future__ import annotations

from dataclasses import replace

from ixsearch.patterns.dialects.dialect import (
    Dialect,
    Frequency,
    Letters,
    Odd,
    Raises,
    Stage,
    Types,
)

_AT_CONFIG = "when the configuration is made"
_KEY_ERROR = Raises("KeyError", _AT_CONFIG)
_TYPE_ERROR = Raises("TypeError", _AT_CONFIG)
_INDEX_ERROR = Raises("IndexError", "at model construction")
_FILE = "transformers/models/glm_moe_dsa/configuration_glm_moe_dsa.py"

_LATER = Dialect(
    "transformers",
    "transformers",
    versions=">=5.11,<6",
    label="5.11 and later",
    read_to="5.24.0",
    sources=(f"{_FILE}:134-147 of transformers 5.24.0, run; the same in 5.11.0, 5.12.1, 5.19.0",),
    reads=("indexer_types", "index_topk_pattern", "index_topk_freq"),
    writes=("index_topk_pattern", "indexer_types"),
    only_types=("glm_moe_dsa",),
    filled_by={"glm_moe_dsa": "5.11.0"},
    frequency=Frequency(
        offset=2,
        null=_TYPE_ERROR,
        zero=Odd.ONE,
        negative=Odd.ONE,
        text=_TYPE_ERROR,
        offset_null=_TYPE_ERROR,
        offset_text=_TYPE_ERROR,
    ),
    letters=Letters(
        short=_INDEX_ERROR,
        lower=_KEY_ERROR,
        other=_KEY_ERROR,
        empty=_INDEX_ERROR,
        words=_KEY_ERROR,
        no_list=_TYPE_ERROR,
        lists_are_types=True,
    ),
    types=Types(
        short=_INDEX_ERROR,
        no_word=Raises("StrictDataclassFieldValidationError", _AT_CONFIG),
        null=Raises("TypeError", "at model construction"),
    ),
    stage=Stage.NONE,
    first_shared="ValueError in the first forward: shared layers require top-k indices",
    bare_full="a warning: the weights are newly initialised",
)

ROWS = (
    replace(
        _LATER,
        versions=">=5.6,<5.11",
        label="5.6-5.10",
        read_to="5.10.4",
        sources=(f"{_FILE} of transformers 5.6.0 to 5.10.4", "transformers pull request 45424"),
        filled_by={"glm_moe_dsa": "5.6.0"},
        pops_keys=True,
        frequency=Frequency(
            offset=2,
            reads_offset=False,
            null=_TYPE_ERROR,
            zero=Raises("ZeroDivisionError", _AT_CONFIG),
            text=_TYPE_ERROR,
        ),
        first_is_full=True,
        first_shared="it runs its indexer all the same",
    ),
    _LATER,
)
