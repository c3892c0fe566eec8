"""IX2..: the pattern and the model it should run on."""

from __future__ import annotations

import json

from ixsearch.patterns.rules.files import GOOD_FILE
from ixsearch.patterns.rules.rule import Example, Rule

CONFIG = {
    "architectures": ["DeepseekV32ForCausalLM"],
    "model_type": "deepseek_v32",
    "num_hidden_layers": 8,
    "num_nextn_predict_layers": 1,
    "index_topk": 2048,
}


def checkpoint(
    owners: tuple[int, ...] = tuple(range(8)), **keys: object
) -> tuple[tuple[str, str], ...]:
    """The files of a checkpoint `model` whose layers `owners` have indexers."""
    names = [f"model.layers.{i}.self_attn.indexer.wk.weight" for i in owners]
    index = {"weight_map": dict.fromkeys(names, "model.safetensors")}
    return (
        ("model/config.json", json.dumps(CONFIG | keys)),
        ("model/model.safetensors.index.json", json.dumps(index)),
    )


MODEL = checkpoint()
SHARED = {"index_topk_freq": 4, "index_skip_topk_offset": 3}
GLM_5_HALF = "FFSFSSSFSSFFFSSSFFFSFSSSSSSFFSFFSFFSSFFFFFFSFFFFFSFFSSSSSSFSFFFSFSSSFSFFSFFSSS"
GOOD_61 = "FFFSSFFSFFSFSSFFSFFSSFFSSFSFFSFSSFFSFFSFFFSSFFSFSSFFSFFSSFFSF"

RULES = (
    Rule(
        "IX201",
        "wrong-length",
        "error",
        "The pattern has not one letter a layer",
        "Most engines take missing letters for F and drop those that are too many, and none says"
        " so. All of the pattern may belong to another model.",
        bad=Example("FFSSFS --model model", MODEL),
        good=Example("FFSSFSSS --model model", MODEL),
        more="SGLang up to 0.5.12 stops with an IndexError, transformers when it builds the layer.",
    ),
    Rule(
        "IX202",
        "mtp-letters",
        "error",
        "The pattern has letters for the MTP layers too",
        "MTP layers always run their own indexer. A letter S that reached one would make it read a"
        " buffer that it never wrote.",
        bad=Example("FFSSFSSSF --model model", MODEL),
        good=Example("FFSSFSSS --model model", MODEL),
        more="A pattern covers num_hidden_layers. vLLM 0.22 gives letters behind them to MTP"
        " layers.",
    ),
    Rule(
        "IX203",
        "full-without-indexer",
        "error",
        "A layer is F, and the checkpoint has no indexer weights for it",
        "Its indexer would run with random weights: gibberish beyond index_topk tokens (mlx-lm"
        " issues 1418 and 1453).",
        bad=Example("FFSSFSSS --model model", checkpoint((0, 1, 2))),
        good=Example("FFSSSSSS --model model", checkpoint((0, 1, 2))),
    ),
    Rule(
        "IX204",
        "trained-shared",
        "error",
        "A layer is F that the model was trained with as S",
        "A layer trained to use its neighbour's indices is worse, not better, with its own: a run"
        " of GLM-5.2 with S layers that select for themselves has a perplexity of 3.21 instead of"
        " 2.72 (ik_llama issue 2063).",
        bad=Example("FFFFFFFF --model model", checkpoint((0, 1, 2, 6), **SHARED)),
        good=Example("FFFSSSFS --model model", checkpoint((0, 1, 2, 6), **SHARED)),
        more="The config.json of such a model sets index_topk_freq or indexer_types; one with"
        " index_topk_pattern got its pattern afterwards, and so did one whose S layers have indexer"
        " weights: of them this is not said. Without the weights it is a warning.",
    ),
    Rule(
        "IX205",
        "no-dsa",
        "error",
        "The model has no DeepSeek Sparse Attention",
        "Without an indexer there is nothing to share.",
        bad=Example("FFSSFSSS --model model", checkpoint(index_topk=None)),
        good=Example("FFSSFSSS --model model", MODEL),
        more="The config has no index_topk, or the checkpoint no indexer weights on any layer.",
    ),
    Rule(
        "IX206",
        "unknown-architecture",
        "warning",
        "The architecture is not known here",
        "Its layers may be counted in another way: DeepSeek-V4's pattern covers only a part of"
        " them.",
        bad=Example("FFSSFSSS --model model", checkpoint(architectures=["OtherForCausalLM"])),
        good=Example("FFSSFSSS --model model", MODEL),
    ),
    Rule(
        "IX207",
        "other-model",
        "warning",
        "The pattern file was made for another model",
        "A pattern belongs to the model it was searched on: with as many S layers, another"
        " model's pattern can ruin long-context answers.",
        bad=Example(
            "pattern.yaml --model model",
            (("pattern.yaml", GOOD_FILE.replace("Deepseek", "Other")), *MODEL),
        ),
        good=Example("pattern.yaml --model model", (("pattern.yaml", GOOD_FILE), *MODEL)),
    ),
    Rule(
        "IX208",
        "published-elsewhere",
        "warning",
        "This is the published pattern of another model, or a piece of it",
        "It was never searched on this one. The example for 61 layers in vLLM's manual is the first"
        " 61 letters of that for GLM-5's 78.",
        bad=Example(f"{GLM_5_HALF[:61]} --model deepseek-v3.2"),
        good=Example(f"{GOOD_61} --model deepseek-v3.2"),
    ),
    Rule(
        "IX209",
        "low-retention",
        "warning",
        "So few layers are F that published results lost quality",
        "At 1 of 8 layers F even the searched pattern of the paper's 30B model lost 4.1 of 50.2"
        " points on long contexts; at 1 of 4 it lost 0.3 (arXiv 2603.12201, table 2).",
        bad=Example("FSSSSSSS"),
        good=Example("FFSSFSSS"),
        more="Said below a retention of 0.25, unless the model was trained so. Measure yours:"
        " `ixsearch evaluate` on long documents; short tests cannot see the damage.",
    ),
    Rule(
        "IX210",
        "uniform-pattern",
        "warning",
        "The pattern is uniform, as index_topk_freq makes it",
        "On the paper's 30B model uniform patterns lost 2.8 of 50.2 points on long contexts at 1 of"
        " 2 layers F and 7.2 at 1 of 4; searched ones of the same speed lost nothing and 0.3"
        " (arXiv 2603.12201, table 2).",
        bad=Example("FFSSSFSSSFSS"),
        good=Example("FFSSSFSSSSFS"),
        more="Not said of a model that was trained with that pattern.",
    ),
    Rule(
        "IX211",
        "weights-not-seen",
        "info",
        "It was not checked which layers have an indexer",
        "Models that were trained with sharing have indexer weights on some layers only.",
        bad=Example("FFSSFSSS --model model/config.json", MODEL[:1]),
        good=Example("FFSSFSSS --model model", MODEL),
    ),
    Rule(
        "IX212",
        "stage-starts-shared",
        "error",
        "A pipeline stage begins with an S layer",
        "The indices of the stage before do not reach it.",
        bad=Example("FFSSFSSS --model model --pp 4 --engine vllm==0.28.0", MODEL),
        good=Example("FFSSFSFS --model model --pp-partition 4,2,2 --engine vllm==0.28.0", MODEL),
        more="An engine that sends the indices on is not blamed. vLLM reads a buffer that nobody"
        " has written, without a word (RFC 50853, vllm-ascend 10232). Mend: make the stage's first"
        " layer F, or move the stages with VLLM_PP_LAYER_PARTITION or SGLANG_PP_LAYER_PARTITION.",
    ),
    Rule(
        "IX213",
        "partition-does-not-fit",
        "error",
        "The pipeline partition does not fit the model",
        "The stages must hold all layers, and each at least one.",
        bad=Example("FFSSFSSS --pp-partition 4,3"),
        good=Example("FFSSFSSS --pp-partition 4,4"),
    ),
    Rule(
        "IX214",
        "published-pattern",
        "info",
        "This is a published pattern",
        "So its results can be read where it was published.",
        bad=Example(f"{GLM_5_HALF} --model glm-5"),
        good=Example("FFSSFSSS"),
    ),
    Rule(
        "IX215",
        "unknown-model",
        "error",
        "The model cannot be read",
        "The pattern was not checked against it.",
        bad=Example("FFSSFSSS --model nowhere"),
        good=Example("FFSSFSSS --model model", MODEL),
        more="--model takes a checkpoint folder, its config.json, or a preset: deepseek-v3.2,"
        " glm-5, glm-5.1, glm-5.2.",
    ),
    Rule(
        "IX216",
        "layers-not-known",
        "info",
        "How many layers the model has is not known",
        "What a frequency means depends on it, so nothing was resolved.",
        bad=Example("overrides.json", (("overrides.json", '{"index_topk_freq": 4}'),)),
        good=Example(
            "overrides.json --model model", (("overrides.json", '{"index_topk_freq": 4}'), *MODEL)
        ),
    ),
)
