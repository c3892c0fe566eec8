"""Searches: how fast they are, which finds what for how much, and the report of that.

    python bench/search.py
    python bench/search.py speed --documents 2 --budget 8,4 --search greedy
    python bench/search.py speed ./my-model --texts texts.jsonl --device cuda
    python bench/search.py study bench/models/deep --memo deep.gz --out deep.json
    python bench/search.py judge bench/models/deep --results deep.json --memo deep.gz --held-out 256
    python bench/search.py report deep.json --folder report

`speed`, which is meant where nothing is said: scoring one pattern, and one whole search.

`study`: every method over some seeds, each seed with documents of its own. All scores that were
computed are in the memo, so a run that ended after `--seconds`, or was killed, goes on where it was
when it is repeated, on whatever machine; costs are counted as if nothing was known.

`judge`: what methods found, on more held-out documents than the study took. It can be repeated too.

`report`: a table with intervals and a picture of each model, from one or more results of `study`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as the command line does, before torch

from search_study.methods import METHODS

from ixsearch.search.strategy import DEFAULT_SEARCH, SEARCHES

JOBS = ("speed", "study", "judge", "report")


def main(words: Sequence[str]) -> None:
    args = parse(words)
    wanted = {name: value for name, value in vars(args).items() if name != "job"}
    if args.job == "speed":
        from search_speed import speed

        speed(args)
    elif args.job == "study":
        from search_study.study import StudySettings, study

        study(StudySettings(**wanted))
    elif args.job == "judge":
        from search_study.judge import JudgeSettings, judge

        judge(JudgeSettings(**wanted))
    else:
        from search_study.report import write_report

        write_report(args.results, args.folder, args.reference)


def parse(words: Sequence[str]) -> argparse.Namespace:
    if not words or words[0] not in (*JOBS, "-h", "--help"):
        words = ["speed", *words]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    jobs = parser.add_subparsers(dest="job", required=True)
    _add_speed(speed := jobs.add_parser("speed"))
    _add_study(jobs.add_parser("study"))
    _add_judge(jobs.add_parser("judge"))
    _add_report(jobs.add_parser("report"))
    args = parser.parse_args(words)
    if args.job == "speed" and args.model and not args.texts:
        speed.error("MODEL needs --texts FILE: the bundled texts are in another language")
    return args


def _add_speed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", metavar="MODEL", help="default: the bundled model")
    parser.add_argument("--texts", type=Path, metavar="FILE", help="jsonl, as optimize takes it")
    parser.add_argument("--documents", type=_count, default=8, metavar="N", help="default: 8")
    parser.add_argument("--search", choices=list(SEARCHES), default=DEFAULT_SEARCH)
    parser.add_argument("--budget", metavar="8,4", help="default: that of optimize")
    parser.add_argument("--device")


def _add_study(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", nargs="?", metavar="MODEL", help="that knows the bundled texts; default: bundled")
    add("--out", type=Path, required=True, metavar="FILE", help="results; .json")
    add("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4], metavar="N")
    add("--documents", type=_count, default=16, metavar="N", help="to search on; default: 16")
    add("--held-out", type=_count, default=32, metavar="N", help="to judge on; default: 32")
    add("--budget", metavar="8,4", help="default: 3/4, 1/2, 3/8, 1/4 and 1/8 of the layers")
    add("--again", nargs="+", choices=METHODS, default=[], metavar="NAME", help="not from --out")
    _add_resumable(parser)


def _add_judge(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", nargs="?", metavar="MODEL", help="of the results; default: bundled")
    add("--results", type=Path, required=True, metavar="FILE", help="from study; is replaced")
    add("--budget", metavar="8,4", help="default: all")
    add("--held-out", type=_count, required=True, metavar="N", help="documents a seed")
    _add_resumable(parser)


def _add_resumable(parser: argparse.ArgumentParser) -> None:
    """What the jobs take that go on where they were."""
    add = parser.add_argument
    add("--memo", type=Path, required=True, metavar="FILE", help="scores; .gz")
    add("--methods", nargs="+", choices=METHODS, default=METHODS, metavar="NAME", help=_names())
    add("--seconds", type=float, default=500.0, metavar="S", help="then end; default: 500")
    add("--device")


def _add_report(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("results", nargs="+", type=Path, metavar="FILE", help="from study, one or more")
    add("--folder", type=Path, default=Path("report"), metavar="DIR", help="default: report")
    add("--reference", default="greedy", metavar="NAME", help="compare with; default: greedy")


def _names() -> str:
    return f"of {', '.join(METHODS)}; default: all"


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("1 or more")
    return number


if __name__ == "__main__":
    main(sys.argv[1:])
