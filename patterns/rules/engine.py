"""IX4..: what an engine of a given version makes of it."""

from __future__ import annotations

from ixsearch.patterns.rules.model import MODEL, SHARED, checkpoint
from ixsearch.patterns.rules.rule import Example, Rule

GLM_KEYS = {"architectures": ["GlmMoeDsaForCausalLM"], "model_type": "glm_moe_dsa"}
GLM = checkpoint(**GLM_KEYS)
PATTERN = '{"use_index_cache": true, "index_topk_pattern": "FFSSFSSS"}'
TYPES = (
    '{"indexer_types": ["full", "full", "shared", "shared", "full", "shared", "shared", "full"]}'
)

BOTH = '{"index_topk_pattern": "FFSSFSSF", ' + TYPES[1:]


def _json(text: str, arguments: str, model: tuple[tuple[str, str], ...] = MODEL) -> Example:
    return Example(f"overrides.json --model model {arguments}", (("overrides.json", text), *model))


RULES = (
    Rule(
        "IX401",
        "unknown-engine",
        "error",
        "The engine, or its version, is not known here",
        "Engines changed their rules from version to version; what an unread one does would be"
        " guessed.",
        bad=Example("FFSSFSSS --engine vllm==0.99.0"),
        good=Example("FFSSFSSS --engine vllm==0.33.0"),
        more="`ixsearch explain --engines` lists the versions whose source was read.",
    ),
    Rule(
        "IX402",
        "ignored-key",
        "error",
        "The engine does not read a key that sets the pattern",
        "It runs another pattern than the one you wrote, and says nothing.",
        bad=_json(PATTERN, "--engine sglang==0.5.20", GLM),
        good=_json(TYPES, "--engine sglang==0.5.20", GLM),
        more="SGLang 0.5.20 and later reads indexer_types first, and the configuration class of"
        " GLM models fills that with all-full before overrides are applied: index_topk_pattern and"
        " index_topk_freq are then never looked at. vLLM reads no indexer_types for DeepSeek and"
        " GLM models.",
    ),
    Rule(
        "IX403",
        "needless-key",
        "info",
        "The engine does not read a key; it makes no difference",
        "What runs is what the other keys say.",
        bad=_json(BOTH, "--engine vllm==0.28.0", GLM),
        good=_json(PATTERN, "--engine vllm==0.28.0", GLM),
        more="Of use_index_cache this is never said: it does no harm where it is not read.",
    ),
    Rule(
        "IX404",
        "switch-missing",
        "error",
        "The engine reads a pattern only with use_index_cache",
        "The keys of a pattern do nothing then, and nothing says so.",
        bad=_json('{"index_topk_pattern": "FFSSFSSS"}', "--engine vllm==0.22.0"),
        good=_json(PATTERN, "--engine vllm==0.22.0"),
        more="vLLM 0.22 and ATOM ask for it; for others it does no harm.",
    ),
    Rule(
        "IX405",
        "engine-fails",
        "error",
        "The engine stops on this",
        "It ends with a Python exception that does not name the cause.",
        bad=_json('{"index_topk_freq": 0}', "--engine vllm==0.33.0"),
        good=_json('{"index_topk_freq": 1}', "--engine vllm==0.33.0"),
    ),
    Rule(
        "IX406",
        "cannot-load",
        "error",
        "The engine cannot load this checkpoint with this pattern",
        "It builds no indexer on S layers, and its loader stops on weights for one. Those of"
        " DeepSeek-V3.2, GLM-5 and GLM-5.1 have them on all layers.",
        bad=Example("FFSSFSSS --model model --engine vllm==0.33.0", MODEL),
        good=Example("FFSSFSSS --model model --engine vllm==0.28.0", MODEL),
        more="vLLM 0.24 is so, and 0.29 to 0.33 on CUDA. `ixsearch strip-indexers MODEL"
        " pattern.yaml COPY` writes a copy of the checkpoint without these weights; files that do"
        " not change are linked, not copied.",
    ),
    Rule(
        "IX407",
        "mtp-shared",
        "warning",
        "The MTP layer of this engine may reuse indices that are not its own",
        "Its drafts are then bad: acceptance falls, answers stay right.",
        bad=Example(
            "model --engine vllm==0.22.0 --mtp",
            checkpoint(use_index_cache=True, index_topk_freq=3),
        ),
        good=_json(PATTERN, "--engine vllm==0.22.0 --mtp"),
        more="vLLM 0.21 to 0.25 apply index_topk_freq of config.json to the MTP layer as to any"
        " other, and its letter if the pattern has one. Overrides do not reach the draft model.",
    ),
    Rule(
        "IX408",
        "first-layer-unfilled",
        "error",
        "In this engine layer 0 becomes S",
        "It has no earlier layer to share with.",
        bad=Example(
            "model --engine transformers==5.24.0",
            checkpoint(**GLM_KEYS, index_topk_freq=4, index_skip_topk_offset=0),
        ),
        good=Example(
            "model --engine transformers==5.24.0",
            checkpoint(**GLM_KEYS, index_topk_freq=4, index_skip_topk_offset=2),
        ),
    ),
    Rule(
        "IX409",
        "newer-than-read",
        "warning",
        "This version is newer than the newest one whose source was read",
        "The rule of that one is shown; it may have changed since.",
        bad=Example("FFSSFSSS --engine sglang==0.5.99"),
        good=Example("FFSSFSSS --engine sglang==0.5.23"),
    ),
    Rule(
        "IX410",
        "misread-letters",
        "warning",
        "The engine runs other letters than the pattern has",
        "It takes missing, lower-case and unknown letters for F, or drops what is too long, and"
        " says nothing.",
        bad=_json('{"index_topk_pattern": "FFSSFSss"}', "--engine vllm==0.28.0"),
        good=_json('{"index_topk_pattern": "FFSSFSSS"}', "--engine vllm==0.28.0"),
    ),
    Rule(
        "IX411",
        "keys-may-be-lost",
        "warning",
        "Some versions of transformers drop these keys of config.json",
        "The engine then sees none of them, and all layers are F, silently.",
        bad=Example(
            "model --engine vllm==0.28.0",
            checkpoint(**GLM_KEYS, index_topk_pattern="FFSSFSSS"),
        ),
        good=_json(PATTERN, "--engine vllm==0.28.0", GLM),
        more="The configuration class of GLM models in transformers 5.6 to 5.10 takes"
        " index_topk_pattern and index_topk_freq out when it makes indexer_types of them, which"
        " vLLM does not read. Overrides arrive later and are safe.",
    ),
    Rule(
        "IX412",
        "depends-on-model",
        "warning",
        "Whether the engine reads this depends on the model, which is not known",
        "It reads indexer_types first, which the configuration class of GLM models fills in: other"
        " keys are then ignored, silently.",
        bad=Example(
            "overrides.json --engine sglang==0.5.23",
            (("overrides.json", '{"index_topk_pattern": "FFSSFSSS"}'),),
        ),
        good=_json('{"index_topk_pattern": "FFSSFSSS"}', "--engine sglang==0.5.23"),
        more="SGLang 0.5.20 and later is so.",
    ),
    Rule(
        "IX413",
        "unbacked-layer",
        "error",
        "What the engine runs has F on layers without indexer weights",
        "It is not the pattern that was written: the engine reads the keys otherwise.",
        bad=Example(
            "model --engine vllm==0.22.0",
            checkpoint((0, 1, 2, 6), use_index_cache=True, **SHARED),
        ),
        good=Example("model --engine vllm==0.28.0", checkpoint((0, 1, 2, 6), **SHARED)),
    ),
)
