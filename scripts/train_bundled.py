"""Train the bundled model from a seed, on one GPU, in one run of less than nine minutes.

    PYTHONPATH=. python scripts/train_bundled.py --out OUT

Dense pre-training; the indexers alone, by KL to the attention of the model, which stays as it is;
sparse training; an MTP layer on the frozen model: that is the variant `sparse`. Then sparse
training with random S layers, and the MTP layer once more: the variant `drop`. Each is written to
a folder of its own as a `deepseek_v32` checkpoint. `figures.json` and `figures.md` say how long
the phases took and how well both solve held-out problems under layer patterns.

Phases are given in seconds, so a seed does not fix the weights bit for bit. `--shape` and `--last`
make the models that searches are studied on, which have no MTP layer:

    PYTHONPATH=. python scripts/train_bundled.py --shape deep --last sparse --out OUT
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
from training.budget import PLAN, Budget
from training.card import tables
from training.exam import Exam, acceptance, grade
from training.export import export_folder, load_folder
from training.log import Log
from training.model import DsaModel
from training.mtp import DraftLayer
from training.patterns import PatternTable
from training.shape import SHAPES
from training.stages import compile_stages
from training.trainer import Settings, Trainer


def main() -> None:
    options = parse()
    log = Log(options.out)
    budget = Budget(options.budget, _plan(options))
    prepare_torch(options.seed)
    model, draft = make(options)
    settings = Settings(
        seed=options.seed,
        batch=options.batch,
        workers=options.workers,
        rate=options.rate,
        stage=0.0 if options.start == "dense" else 1.0,
    )
    log.figures["run"] = describe(settings, model, draft)
    log.say(log.figures["run"])
    trainer = Trainer(model, draft, settings, log)
    run(trainer, budget, options)
    log.say("done")
    sys.stdout.flush()
    os._exit(0)  # the workers that make lessons would go on


def run(trainer: Trainer, budget: Budget, options: argparse.Namespace) -> None:
    """All phases from the first that is wanted."""
    log, model, draft = trainer.log, trainer.model, trainer.draft
    exams = {
        split: Exam.draw(split, count, trainer.device)
        for split, count in (("calibration", options.calibration), ("test", options.documents))
    }
    batch = options.batch
    table = PatternTable(model, exams["calibration"], exams["test"], batch)

    def finish(variant: str) -> None:
        export_folder(options.out / variant, model, draft)
        rows = table.make(options.random)
        rows["acceptance"] = acceptance(model, draft, exams["test"], batch)
        log.note("variants", variant, rows)
        (options.out / "figures.md").write_text(tables(log.figures))
        log.say(variant, rows["all_full"], rows["acceptance"])
        for entry in [*rows["greedy"], *rows["uniform"]]:
            log.say(entry)

    phases = {
        "dense": trainer.dense,
        "warm": trainer.warm,
        "sparse": trainer.sparse,
        "draft_dense": lambda seconds: trainer.draft_phase("draft_dense", seconds, dense=True),
        "draft": lambda seconds: trainer.draft_phase("draft", seconds, dense=False),
        "drop": trainer.drop,
        "redraft": lambda seconds: trainer.draft_phase("redraft", seconds, dense=False),
    }
    names = list(phases)
    wanted = names[names.index(options.start) : names.index(options.last) + 1]
    with_mtp = options.last not in ("dense", "warm", "sparse")
    for name in wanted:
        phases[name](budget.seconds(name))
        if name in ("dense", "warm", "sparse"):
            result = grade(model, exams["test"], dense=name == "dense", batch=batch)
            log.say("after", name, vars(result))
            log.note("after", name, vars(result))
            if name == "dense" and result.accuracy < options.least:
                log.say("too little was learned to go on")
                return
        if name in ("dense", "sparse", "drop"):
            export_folder(options.out / name, model, draft if with_mtp else None)
        if name in ("draft", "redraft"):
            finish("sparse" if name == "draft" else "drop")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=525, help="seconds for everything")
    parser.add_argument(
        "--seconds", nargs="*", type=phase_seconds, default=[], metavar="PHASE=SECONDS"
    )
    parser.add_argument("--start", choices=list(PLAN), default="dense", help="the first phase")
    parser.add_argument("--last", choices=list(PLAN), default="redraft", help="the last phase")
    parser.add_argument("--model", type=Path, help="the folder to start from")
    parser.add_argument("--shape", choices=list(SHAPES), default="bundled")
    parser.add_argument("--rate", type=float, default=1.0, help="of the rates in dense training")
    parser.add_argument("--batch", type=int, default=32, help="documents a step")
    parser.add_argument("--workers", type=int, default=10, help="processes that make lessons")
    parser.add_argument("--calibration", type=int, default=64, help="documents of the search")
    parser.add_argument("--documents", type=int, default=96, help="held-out documents")
    parser.add_argument(
        "--least", type=float, default=0.5, help="go on if dense pre-training solves this share"
    )
    parser.add_argument("--random", type=int, default=20, help="random patterns of each budget")
    return parser.parse_args()


def _plan(options: argparse.Namespace) -> dict[str, float]:
    """Seconds of the phases up to the last that is wanted."""
    seconds = PLAN | dict(options.seconds)
    names = list(PLAN)
    return {name: seconds[name] for name in names[: names.index(options.last) + 1]}


def phase_seconds(text: str) -> tuple[str, float]:
    name, _, seconds = text.partition("=")
    if name not in PLAN:
        raise argparse.ArgumentTypeError(f"phase {name!r}: one of {', '.join(PLAN)}")
    return name, float(seconds)


def prepare_torch(seed: int) -> None:
    torch.manual_seed(seed)
    torch.set_float32_matmul_precision("high")
    compile_stages(torch.cuda.is_available())


def make(options: argparse.Namespace) -> tuple[DsaModel, DraftLayer]:
    """New, or as they stand in the folder to start from."""
    cuda = torch.cuda.is_available()
    device, dtype = ("cuda", torch.bfloat16) if cuda else ("cpu", torch.float32)
    if options.model:
        return load_folder(options.model, dtype, device)
    shape = SHAPES[options.shape]
    return DsaModel(shape, dtype).to(device), DraftLayer(shape).to(device)


def describe(settings: Settings, model: DsaModel, draft: DraftLayer) -> dict[str, Any]:
    """What was run, on what."""
    cuda = torch.cuda.is_available()
    return {
        "command": " ".join(["python", *sys.argv]),
        "settings": vars(settings),
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "date": time.strftime("%Y-%m-%d"),
        "parameters": sum(p.numel() for p in model.parameters()),
        "mtp_parameters": sum(p.numel() for p in draft.parameters()),
    }


if __name__ == "__main__":
    main()
