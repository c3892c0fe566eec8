"""A run's outcome, made up: sixteen layers, four budgets, a study with the same trials."""

import random
import warnings
from dataclasses import replace

import optuna
import pytest

from ixsearch.output.outcome import Outcome, Totals
from ixsearch.patterns import Pattern
from ixsearch.recommendation import recommend
from ixsearch.results import DocumentSet, Finalist, Quality, Ratio, Speed, TaskScore, TrialRow
from ixsearch.runtime.interface import ModelInfo, Workload
from tests.ixsearch.judged import judged

LAYERS = 16
TOLERANCE = 0.08


def quality(divergence: float, matched: int, documents: int = 8) -> Quality:
    return Quality(
        documents=documents,
        tokens=1234,
        divergence=divergence,
        divergence_stderr=divergence / 9,
        loss=0.2 + divergence,
        answers=400,
        matched=matched,
    )


def speed(gain: float) -> Speed:
    prefill, decode = 1 + gain, 1 + gain / 3
    return Speed(
        prefill_tokens_per_s=2345.6 * prefill,
        time_per_output_token_ms=7.891 / decode,
        prefill_ratio=Ratio(prefill, prefill - 0.013, prefill + 0.017),
        decode_ratio=Ratio(decode, decode - 0.011, decode + 0.019),
        rounds=7,
    )


def task(share: float) -> TaskScore:
    return TaskScore("gsm_worlds", 56, share, 0.0345, share - 0.018, 0.0351, 0.97)


def finalist(origin: str, letters: str | Pattern, divergence: float, matched: int, **measured):
    pattern = letters if isinstance(letters, Pattern) else Pattern(letters)
    return Finalist(
        pattern,
        origin,
        quality(0.93 * divergence, min(matched + 5, 400)),
        quality(divergence, matched),
        **measured,
    )


def finalists() -> tuple[Finalist, ...]:
    return (
        finalist("baseline", "F" * LAYERS, 0.0, 390, task=task(0.964), speed=speed(0.0)),
        finalist("best", "FSFFFSFFFFSFFSFF", 0.0004, 389, speed=speed(0.06)),
        finalist("best", "FSFSFSFFFSSFFSSS", 0.0121, 381, task=task(0.946), speed=speed(0.13)),
        finalist("best", "FSSSFSSFFSSSSSSS", 0.2345, 290, task=task(0.643), speed=speed(0.21)),
        finalist("uniform", Pattern.uniform(LAYERS, 12), 0.0357, 361),
        finalist("uniform", Pattern.uniform(LAYERS, 8), 0.4321, 154, task=task(0.357)),
        finalist("uniform", Pattern.uniform(LAYERS, 4), 1.5432, 61),
    )


def trial_rows() -> tuple[TrialRow, ...]:
    rng = random.Random(5)
    known = [(f.pattern, f.origin, f.calibration.divergence) for f in finalists()]
    for _ in range(50):
        size = rng.randint(4, 15)
        pattern = Pattern.from_full(LAYERS, [0, *rng.sample(range(1, LAYERS), size - 1)])
        known.append((pattern, "lazy greedy", 0.6 ** (size - 4) * rng.uniform(0.5, 3)))
    return tuple(
        TrialRow(i, p, who, d, d / 9, 0.2 + d, f"2026-02-03T04:05:{i:02d}")
        for i, (p, who, d) in enumerate(known)
    )


@pytest.fixture
def outcome() -> Outcome:
    found, judgement = judged(finalists(), TOLERANCE)
    return Outcome(
        model=ModelInfo(
            name="drop-16",
            architecture="DeepseekV32ForCausalLM",
            model_type="deepseek_v32",
            num_layers=LAYERS,
            index_topk=48,
            indexer_layers=tuple(range(LAYERS)),
            vocab_size=97,
            max_positions=1024,
            config_hash="c0ffee12",
            weights_hash="feed5678",
            default_pattern=Pattern.all_full(LAYERS),
            device="cpu",
            dtype="float32",
            versions={"torch": "2.11.0", "python": "3.12.1"},
        ),
        tool_version="0.1.0",
        date="2026-02-03T04:06:07",
        seed=17,
        study_name="drop-16-main",
        storage="postgresql://me:secret@host/db",
        document_sets=(
            DocumentSet("calibration", "worlds seed 1", 8, 6100, 2900, 3100, "ab12cd34"),
            DocumentSet("held-out", "worlds seed 2", 8, 6200, 2950, 3150, "ef56ab78"),
        ),
        trials=trial_rows(),
        finalists=tuple(found),
        recommendation=recommend(found, judgement),
        totals=Totals(57, 36.25, {"start": 14.2, "search": 88.1, "held-out": 152.0}, 36.25),
        workload=Workload(context=512, batch=4, new_tokens=32),
        tolerance=TOLERANCE,
        warnings=(),
        command="ixsearch optimize --storage postgresql://me:secret@host/db --seed 17",
    )


@pytest.fixture
def none_recommended(outcome) -> Outcome:
    found, judgement = judged(outcome.finalists, 0.001)
    return replace(outcome, finalists=tuple(found), recommendation=recommend(found, judgement))


@pytest.fixture
def study() -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(directions=["minimize", "minimize"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metric names are experimental in optuna
        study.set_metric_names(["divergence", "num_full"])
    for row in trial_rows():
        study.add_trial(optuna.trial.create_trial(values=[row.divergence, row.pattern.num_full]))
    return study
