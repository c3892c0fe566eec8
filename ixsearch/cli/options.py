"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

MAX_EPS = 0.1
"""As the runtime takes it."""

Model = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="Folder of a checkpoint in Hugging Face format, or its name on the hub."
        " Default: the small model that comes with ixsearch.",
    ),
]
Documents = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE[=WEIGHT]",
        help="Your own texts, one JSON object a line: 'text', or 'prompt' and 'completion' (then"
        " the completion's tokens count), or 'messages' (the last answer's count). Use texts longer"
        " than the model's index_topk. Or"
        " gsm8k-long: GSM8K's questions behind long contexts, made from --gsm8k. Or bundled: the"
        " word problems of the bundled model. Give it several times for several sets: each counts"
        " by its weight (1 by default), whatever its length.",
    ),
]
Gsm8k = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Decode the real GSM8K too, from a folder with train.jsonl and test.jsonl.",
    ),
]
Context = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Tokens of a gsm8k-long document, and of a prompt of a gsm8k_long task. Default: four"
        " times the model's index_topk.",
    ),
]
NumQuestions = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Questions to decode. Default: 28, of GSM8K all."),
]
Seed = Annotated[int, typer.Option(help="Draws, or splits, the documents.")]
Device = Annotated[
    str | None, typer.Option(help="cpu, cuda, cuda:1 ... Default: cuda when there is one.")
]
Offload = Annotated[
    bool,
    typer.Option(
        "--offload",
        help="For a model larger than the device: leave its weights on disk, and read them once for"
        " each batch of patterns. Nothing is decoded or timed then. `inspect` says how long it"
        " takes.",
    ),
]
DeviceMemory = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="GB",
        help="With --offload: gigabytes (1e9 bytes) of the device for one layer and the states."
        " Default: most of what is free on CUDA, no limit on a CPU.",
    ),
]
Cache = Annotated[
    Literal["float", "fp8-indexer", "fp8"],
    typer.Option(
        help="How keys and latents are cached, in scoring and in decoding: as floats, or in fp8 as"
        " serving engines can have them, the indexer's keys alone or both. It changes scores: a"
        " study has one form.",
    ),
]
Fp8 = Annotated[
    Literal["keep", "dequantise"] | None,
    typer.Option(
        help="Weights that the checkpoint has in FP8. Default: keep on CUDA, dequantise on a CPU.",
    ),
]
LatentNormEps = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=MAX_EPS,
        metavar="EPS",
        help="Of the norms on MLA's latents. Default: the config's rms_norm_eps, as vLLM and SGLang"
        " have it; transformers takes 1e-6.",
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="One JSON object on stdout, also for an error; no table, no bars."),
]
Tolerance = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        help="Accepted net loss of right answers: 0.03 is 3 points. A pattern is recommended only"
        " when a larger loss is excluded with 95 % confidence.",
    ),
]
