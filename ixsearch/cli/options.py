"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Model = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="Folder of a checkpoint in Hugging Face format, or its name on the hub."
        " Default: the small model that comes with ixsearch.",
    ),
]
Documents = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Your own texts, one JSON object a line: 'text', or 'prompt' and 'completion' (then"
        " the completion's tokens count). Use texts longer than the model's index_topk. Or"
        " gsm8k-long: GSM8K's questions behind long contexts, made from --gsm8k.",
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
        help="Tokens of a gsm8k-long document. Default: four times the model's index_topk.",
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
Json = Annotated[
    bool, typer.Option("--json", help="One JSON object on stdout, no table and no bars.")
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
