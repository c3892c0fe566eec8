"""IX3..: the keys that spell a pattern in a configuration or an override."""

from __future__ import annotations

from ixsearch.patterns.rules.files import GOOD_VLLM, VLLM
from ixsearch.patterns.rules.model import MODEL
from ixsearch.patterns.rules.rule import Example, Rule


def _json(text: str, arguments: str = "") -> Example:
    return Example(f"overrides.json {arguments}".strip(), (("overrides.json", text), *MODEL))


RULES = (
    Rule(
        "IX301",
        "contradiction",
        "error",
        "Two keys say different patterns",
        "Engines differ in which of them they read.",
        bad=_json(
            '{"index_topk_pattern": "FFSS", "indexer_types": ["full", "shared", "full", "shared"]}'
        ),
        good=_json(
            '{"index_topk_pattern": "FFSS", "indexer_types": ["full", "full", "shared", "shared"]}'
        ),
        more="SGLang and transformers take indexer_types first, vLLM never looks at it.",
    ),
    Rule(
        "IX302",
        "frequency-differs",
        "warning",
        "Engines make different patterns of this frequency and offset",
        "They count the offset from another layer, do not read it, or default to another one.",
        bad=_json('{"index_topk_freq": 4, "index_skip_topk_offset": 3}', "--model model"),
        good=_json('{"use_index_cache": true, "index_topk_pattern": "FFFSSSFS"}', "--model model"),
        more="ATOM counts the offset one layer later than all others, vLLM 0.22 does not read it."
        " Frequency 4 with offset 3: F at 0, 1, 2, 6, 10 in vLLM, SGLang and transformers, at"
        " 0, 1, 2, 3, 7, 11 in ATOM. Write the letters instead; `ixsearch export` always does.",
    ),
    Rule(
        "IX303",
        "frequency-invalid",
        "error",
        "index_topk_freq or index_skip_topk_offset is no usable number",
        "Some engines stop on it; others take it for 1, which shares nothing, or make layer 0 S of"
        " an offset below 1.",
        bad=_json('{"index_topk_freq": 0}'),
        good=_json('{"index_topk_freq": 1}'),
        more="0 is a division by zero in vLLM, null and strings a TypeError; transformers takes 0"
        " and negative numbers for 1.",
    ),
    Rule(
        "IX304",
        "no-pattern",
        "info",
        "No pattern is set",
        "Where that sets none either, nothing is shared.",
        bad=Example("model", MODEL),
        good=Example("FFSSFSSS --model model", MODEL),
    ),
    Rule(
        "IX305",
        "replaced-override",
        "error",
        "Overrides given in two places are replaced, not merged",
        "The later one wins whole, and dotted keys win over all others: what stands elsewhere is"
        " lost.",
        bad=Example("vllm.yaml", (("vllm.yaml", VLLM + "hf_overrides: {rope_theta: 10000.0}\n"),)),
        good=GOOD_VLLM,
        more="The same happens with --hf-overrides or --json-model-override-args on the command"
        " line beside --config: the command line replaces all of the file's mapping.",
    ),
    Rule(
        "IX306",
        "dotted-value",
        "error",
        "A boolean, a list or null stands behind a dotted key",
        "vLLM turns true into a flag without a value and a list into several arguments, on which it"
        " stops; null arrives as the string None.",
        bad=Example("vllm.yaml", (("vllm.yaml", "hf-overrides.use_index_cache: true\n"),)),
        good=GOOD_VLLM,
        more="Write hf-overrides as a mapping. A dotted key is also taken last, so that it replaces"
        " what --hf-overrides on the command line says.",
    ),
)
