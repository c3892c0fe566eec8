"""A small random model with its tokenizer and documents, and ways to run the command line on it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import optuna
import torch
from optuna.trial import FrozenTrial, TrialState
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from typer.testing import CliRunner

from ixsearch.cli.app import app
from ixsearch.patterns import Pattern
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.engine import NativeEngine
from ixsearch.runtime.interface import Request
from ixsearch.runtime.weights import layer_shapes, top_shapes

ROOT = Path(__file__).parents[3]
PLACES = (str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")]))
"""Where processes find the package and its tests, whatever folder they run in."""
LAYERS = 5
TOPK = 6
WORDS = [f"w{i}" for i in range(64)]
CONFIG = {
    "architectures": ["DeepseekV32ForCausalLM"],
    "model_type": "deepseek_v32",
    "vocab_size": len(WORDS),
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "first_k_dense_replace": LAYERS,
    "num_attention_heads": 2,
    "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 16,
    "index_topk": TOPK,
    "index_head_dim": 16,
    "index_n_heads": 2,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "max_position_embeddings": 128,
    "eos_token_id": 1,
}


def make_model(folder: Path, seed: int = 0, **changes: object) -> Path:
    """A checkpoint with random weights and a tokenizer of as many words as it has tokens."""
    folder.mkdir(parents=True)
    values = CONFIG | changes
    (folder / "config.json").write_text(json.dumps(values))
    config = DsaConfig.from_json(values)
    shapes = dict(top_shapes(config))
    for layer in range(config.num_hidden_layers):
        own = layer_shapes(config, layer, with_indexer=True)
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in own.items()}
    generator = torch.Generator().manual_seed(seed)
    tensors = {
        name: torch.randn(shape, generator=generator) * 1.5 * shape[-1] ** -0.5
        if len(shape) > 1
        else 1 + 0.2 * torch.randn(shape, generator=generator)
        for name, shape in shapes.items()
    }
    save_file(tensors, folder / "model.safetensors")
    make_tokenizer(folder, WORDS)
    return folder


def make_tokenizer(folder: Path, words: list[str]) -> None:
    """One token a word; words that are not known are the last one."""
    vocabulary = {word: i for i, word in enumerate(words)}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token=words[-1]))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.save(str(folder / "tokenizer.json"))


def make_documents(path: Path, seed: int = 0, count: int = 6) -> Path:
    """Pairs of prompt and completion of random words, all of the completion past `index_topk`."""
    random = Random(seed)
    return write_rows(
        path,
        [
            {
                "prompt": " ".join(random.choices(WORDS, k=random.randint(14, 22))),
                "completion": " ".join(random.choices(WORDS, k=8)),
            }
            for _ in range(count)
        ],
    )


def make_answered(path: Path, model: Path, seed: int = 7, count: int = 18) -> Path:
    """Texts whose completions are what all-F writes, so that all of its answers are right."""
    engine, random = NativeEngine.load(model, device="cpu"), Random(seed)
    engine.set_pattern(Pattern.all_full(LAYERS))
    prompts = [random.choices(range(len(WORDS)), k=random.randint(14, 22)) for _ in range(count)]
    written = engine.generate([Request(tuple(prompt), 2) for prompt in prompts])
    rows = [
        {"prompt": text(prompt), "completion": text(tokens)}
        for prompt, tokens in zip(prompts, written, strict=True)
    ]
    return write_rows(path, rows)


def text(tokens: Sequence[int]) -> str:
    return " ".join(WORDS[token] for token in tokens)


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(*args: object) -> tuple[int, str, str]:
    """The command line in this process: exit code, stdout, stderr."""
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def warned(said: dict[str, Any]) -> list[str]:
    """The warnings of a command's JSON, but for what is true of random weights and texts."""
    (doubt,) = (w for w in said["warnings"] if "no figure here means anything" in w)
    return [w for w in said["warnings"] if w != doubt]


def refused(*args: object, exit_code: int = 1) -> str:
    """The message of a command that ends with this code, on stderr and without a traceback."""
    code, out, err = run(*args)
    assert (code, out) == (exit_code, ""), (code, out, err)
    assert "Traceback" not in err and "unexpected error" not in err, err
    return err[err.lower().index("error: ") :]


def misused(*args: object) -> str:
    """The message of a command line that is wrong, whatever the files hold."""
    return refused(*args, exit_code=2)


def all_of(text: str, *words: object) -> None:
    """A message has these words in it."""
    assert [word for word in map(str, words) if word not in text] == [], text


LOG = "stderr.txt"
CHILD = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
import torch
torch.set_num_threads(1)
from ixsearch.job import closer_look
closer_look.NEW_TOKENS = 2
from ixsearch.cli import main
"""


@contextmanager
def started(*args: object, cwd: Path, first: str = "") -> Iterator[subprocess.Popen[str]]:
    """The command line as a process group of its own, which is killed at the end.

    Its stderr goes to a file, where `said` reads how far it is. `first`: Python that it runs
    before.
    """
    with (cwd / LOG).open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", f"{CHILD}{first}\nmain()", *map(str, args)],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(PLACES)},
            text=True,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        kill(process)
        process.communicate()


def said(cwd: Path) -> str:
    """What the process wrote to stderr so far."""
    return (cwd / LOG).read_text()


def wait_for(process: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
    """Until that is so, or the process has ended."""
    patience = time.monotonic() + 120
    while process.poll() is None and not reached():
        assert time.monotonic() < patience
        time.sleep(0.002)


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL to the whole group, unless it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def copy_storage(storage: Path, target: Path) -> Path:
    """With what SQLite has not yet moved into the file itself."""
    for suffix in ("", "-wal"):
        if (file := Path(f"{storage}{suffix}")).exists():
            shutil.copy(file, f"{target}{suffix}")
    return target


def read_trials(storage: Path) -> list[FrozenTrial]:
    """Of a copy, so that what a killed process left stays as it is."""
    with TemporaryDirectory() as folder:
        copy = copy_storage(storage, Path(folder, "copy"))
        place = optuna.storages.RDBStorage(f"sqlite:///{copy}")
        trials = [t for s in place.get_all_studies() for t in place.get_all_trials(s._study_id)]
        place.engine.dispose()
    return trials


FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
PASSING = ("worker", "forwards")
"""What of a trial depends on when it was scored: who did it, and what layers its batch shared."""


def finished_trials(storage: Path) -> dict[tuple[str, tuple], list[Any]]:
    """Of every finished pattern and its documents all that must not depend on the rest."""
    trials = [t for t in read_trials(storage) if t.state in FINISHED]
    keys = [(t.user_attrs["pattern"], tuple(map(tuple, t.user_attrs["documents"]))) for t in trials]
    assert len(set(keys)) == len(keys), "a document of a pattern was scored twice"
    return {
        key: [t.state, t.values, t.params, _lasting(t.user_attrs)]
        for key, t in zip(keys, trials, strict=True)
    }


def _lasting(attributes: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if key not in PASSING}


def count_finished(storage: Path) -> int:
    """While another process writes."""
    try:
        with closing(sqlite3.connect(f"file:{storage}?mode=ro", uri=True)) as database:
            query = "SELECT COUNT(*) FROM trials WHERE state IN ('COMPLETE', 'PRUNED')"
            return database.execute(query).fetchone()[0]
    except sqlite3.Error:  # not made yet
        return 0
