"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
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
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Your own texts, one JSON object a line: 'text', or 'prompt' and 'completion' (then"
        " the completion's tokens count). Use texts longer than the model's index_topk.",
    ),
]
Gsm8k = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Decode the real GSM8K too, from a folder with train.jsonl and test.jsonl.",
    ),
]
NumQuestions = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Questions to decode. Default: 56, of GSM8K all."),
]
Seed = Annotated[int, typer.Option(help="Draws, or splits, the documents.")]
Device = Annotated[
    str | None, typer.Option(help="cpu, cuda, cuda:1 ... Default: cuda when there is one.")
]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON object on stdout, no table and no bars.")
]
