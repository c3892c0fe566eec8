"""`ixsearch evaluate --task NAME`: every kind of task, put to all-F and to a pattern."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml

from ixsearch.job.inputs import NativeEngine
from ixsearch.tasks import lm_named
from ixsearch.tasks.catalogue import TASKS

from .job.small import TOPK, refused, run, write_rows
from .tasks_support import write_made_up_gsm8k

pytestmark = pytest.mark.usefixtures("quick_speed")
LONG = [" ".join([f"w{n}"] * 12) for n in range(4)]
"""Of 12 tokens each, more than index_topk."""


@pytest.fixture
def evaluate(small):
    """The JSON of `evaluate` on the small model."""

    def evaluate(*args, model=small / "model", documents=small / "texts.jsonl"):
        given = ("--pattern", "FSSSS", "--documents", documents, "--device", "cpu")
        code, out, err = run("evaluate", model, *given, *args, "--json")
        assert code == 0, err
        return json.loads(out, parse_constant=pytest.fail)

    return evaluate


@pytest.fixture
def ask_small(small):
    """The message of an `evaluate` on the small model that is refused before a score."""

    def ask_small(*args, exit_code=1):
        given = ("--pattern", "FSSSS", "--documents", small / "texts.jsonl", "--device", "cpu")
        return refused("evaluate", small / "model", *given, *args, exit_code=exit_code)

    return ask_small


@pytest.fixture
def no_scores(monkeypatch):
    monkeypatch.setattr(NativeEngine, "score", None)
    monkeypatch.setattr(NativeEngine, "generate", None)


def describe(folder, rows, **changes):
    """A YAML file of a task over `rows`, as a user writes one."""
    values = {
        "task": "my_words",
        "dataset_path": "json",
        "dataset_kwargs": {
            "data_files": {"test": str(write_rows(folder / "rows.jsonl", rows))},
            "cache_dir": str(folder / "cache"),
        },
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{prompt}}",
        "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": [], "max_gen_toks": 1, "do_sample": False},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    file = folder / "my_words.yaml"
    file.write_text(yaml.safe_dump(values | changes))
    return file


def tasks_of(said):
    return [finalist["task"] for finalist in said["finalists"]]


# The tasks that `ixsearch tasks` lists


@pytest.mark.parametrize(
    ("name", "share"), [("ixsearch_word_problems", 1.0), ("ixsearch_word_problems_short", 0.0)]
)
def test_word_problems(name, share, monkeypatch):
    """On few documents: they are not what this is about."""
    monkeypatch.setattr("ixsearch.job.documents.CALIBRATION", 1)
    monkeypatch.setattr("ixsearch.job.documents.HELD_OUT", 1)
    monkeypatch.setattr("ixsearch.job.closer_look.SPEED_SECONDS", 0.1)
    args = ("--pattern", "F" * 10 + "S" * 6, "--task", name, "--questions", 2, "--device", "cpu")
    code, out, err = run("evaluate", *args, "--json")
    assert code == 0, err
    said = json.loads(out)
    assert [(t["task"], t["questions"], t["share_past_topk"]) for t in tasks_of(said)] == [
        (name, 2, share)
    ] * 2
    blind = [w for w in said["warnings"] if name in w and "cannot tell patterns apart" in w]
    assert bool(blind) == (share == 0)


@pytest.mark.parametrize("form", ["examples", "scattered"])
def test_long_gsm8k(evaluate, small, tmp_path, form):
    model = shutil.copytree(small / "model", tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    config |= {"max_position_embeddings": 4096, "eos_token_id": list(range(64))}
    (model / "config.json").write_text(json.dumps(config))
    gsm8k = write_made_up_gsm8k(tmp_path)
    args = ("--task", f"gsm8k_long_{form}", "--gsm8k", gsm8k, "--context", 300, "--questions", 3)
    first, second = tasks_of(evaluate(*args, model=model))
    assert (first["task"], first["questions"]) == (f"gsm8k_long_{form}", 3)
    assert first["share_past_topk"] == 1.0 and first["digest"] == second["digest"]


@pytest.mark.parametrize("name", [task.name for task in TASKS])
def test_every_listed_task_is_known(ask_small, no_scores, name):
    """To the small model none of them can be put without more, and each says why."""
    why = "only for the model that comes" if "word_problems" in name else "give --gsm8k too"
    said = ask_small("--task", name, exit_code=2)
    assert f"--task {name}" in said and why in said


# A task of the user's


def test_a_file_of_ones_own(evaluate, small, tmp_path, monkeypatch):
    """Half of the targets are what the model really writes, taken from a first run."""
    written = []
    plain = NativeEngine.generate

    def spy(self, requests, progress=None):
        found = plain(self, requests, progress)
        written.append([f"w{tokens[0]}" for tokens in found])
        return found

    monkeypatch.setattr(NativeEngine, "generate", spy)
    rows = [{"prompt": prompt, "answer": "none"} for prompt in LONG]
    assert [t["strict"] for t in tasks_of(evaluate("--task", describe(tmp_path, rows)))] == [0, 0]
    baseline = written[0]
    rows = [
        {"prompt": p, "answer": a} for p, a in zip(LONG, [*baseline[:2], "x", "y"], strict=True)
    ]
    again = tmp_path / "again"
    again.mkdir()
    first, second = tasks_of(evaluate("--task", describe(again, rows)))
    assert (first["task"], first["metric"], first["questions"]) == ("my_words", "exact_match", 4)
    assert first["correct"] == [True, True, False, False]
    assert (first["strict"], first["flexible"]) == (0.5, 0.5)
    assert second["digest"] == first["digest"]
    assert second["correct"] == [
        a == b for a, b in zip(written[3], [*baseline[:2], "x", "y"], strict=True)
    ]


def test_a_choice_is_scored_by_likelihood(evaluate, small, tmp_path):
    """The right choice is the likelier one by the engine's own scores."""
    choices = {"choices": ["w5", "w9"], "gold": 0}
    rows = [{"prompt": prompt, **choices} for prompt in LONG]
    file = describe(
        tmp_path,
        rows,
        output_type="multiple_choice",
        doc_to_target="gold",
        doc_to_choice="choices",
        metric_list=[{"metric": "acc"}],
        generation_kwargs=None,
    )
    engine = NativeEngine.load(small / "model", device="cpu")
    first, _ = tasks_of(evaluate("--task", file))
    assert (first["metric"], first["share_past_topk"]) == ("acc", 1.0)
    assert first["correct"] == [likelier(engine, prompt) for prompt in LONG]


def likelier(engine, prompt):
    from ixsearch.runtime.interface import Document

    tokens = tuple(int(word[1:]) for word in prompt.split())
    texts = [Document(f"{w}", (*tokens, w), ((len(tokens), len(tokens) + 1),)) for w in (5, 9)]
    right, wrong = engine.score(texts, [engine.describe().baseline])[0]
    return right.loss_sum < wrong.loss_sum


def test_a_short_task_is_said_to_be_blind(evaluate, tmp_path):
    rows = [{"prompt": "w1 w2", "answer": "w3"}]
    said = evaluate("--task", describe(tmp_path, rows))
    assert [t["share_past_topk"] for t in tasks_of(said)] == [0, 0]
    assert any("the task my_words cannot tell" in warning for warning in said["warnings"])


def test_the_table_names_the_task(small, tmp_path):
    file = describe(tmp_path, [{"prompt": LONG[0], "answer": "w3"}])
    given = ("--pattern", "FSSSS", "--documents", small / "texts.jsonl", "--device", "cpu")
    code, out, _ = run("evaluate", small / "model", *given, "--task", file)
    assert code == 0
    assert "decoded: 1 questions of my_words, exact_match" in " ".join(out.split())


# A task that lm-eval knows


@pytest.fixture
def known_to_lm_eval(tmp_path, monkeypatch):
    """A library of three tasks in place of lm-eval's thirteen thousand."""
    from lm_eval.tasks import TaskManager

    folder = tmp_path / "library"
    folder.mkdir()
    file = describe(folder, [{"prompt": LONG[0], "answer": "w3"}], tag="words")
    values = yaml.safe_load(file.read_text())
    for name, changes in {
        "other_words": {},
        "far_words": {"dataset_path": "nobody/none-such", "dataset_kwargs": None, "tag": None},
    }.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(values | {"task": name} | changes))
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    monkeypatch.setattr(lm_named, "_manager", lambda defaults: manager)


@pytest.mark.usefixtures("known_to_lm_eval")
def test_a_name_of_lm_eval(evaluate):
    assert [t["task"] for t in tasks_of(evaluate("--task", "other_words"))] == ["other_words"] * 2


@pytest.mark.usefixtures("known_to_lm_eval", "no_scores")
def test_unknown_names_and_groups(ask_small):
    said = ask_small("--task", "other_wrds", exit_code=2)
    assert "no task is called other_wrds: did you mean other_words" in said
    assert all(task.name in said for task in TASKS)
    assert "a group of 2 tasks: give one of them: my_words, other_words" in ask_small(
        "--task", "words", exit_code=2
    )


@pytest.mark.usefixtures("known_to_lm_eval", "no_scores")
def test_data_that_cannot_be_fetched(ask_small, monkeypatch):
    import datasets

    def no_network(*args, **kwargs):
        raise ConnectionError("Couldn't reach the Hub\nRetrying")

    monkeypatch.setattr(datasets, "load_dataset", no_network)
    said = ask_small("--task", "far_words")
    assert "the data of the task far_words is not here and cannot be fetched" in said
    assert "Couldn't reach the Hub)" in said and "check the network" in said


@pytest.mark.slow
def test_the_names_that_lm_eval_really_has():
    names = lm_named._manager(True).all_subtasks
    assert {"hellaswag", "gsm8k_cot"} <= set(names)


# What is refused before anything is scored


@pytest.mark.usefixtures("no_scores")
def test_descriptions_that_cannot_be_used(ask_small, tmp_path):
    assert "absent.yaml: no such file" in ask_small("--task", tmp_path / "absent.yaml")
    (tmp_path / "bad.yaml").write_text("task: [")
    assert "bad.yaml (ParserError" in ask_small("--task", tmp_path / "bad.yaml")
    rows = [{"prompt": LONG[0], "answer": "w3"}]
    blurred = [{"metric": "bleu"}]
    said = ask_small("--task", describe(tmp_path, rows, metric_list=blurred))
    assert "my_words is scored by bleu" in said and "exact_match" in said
    sampled = {"do_sample": True, "temperature": 1.0}
    assert "asks for sampling" in ask_small(
        "--task", describe(tmp_path, rows, generation_kwargs=sampled)
    )
    assert "mend its description" in ask_small(
        "--task", describe(tmp_path, rows, doc_to_text="{{ absent.x }}")
    )
    assert "do not fit in the model's 128 positions" in ask_small(
        "--task", describe(tmp_path, rows, generation_kwargs={"max_gen_toks": 120})
    )


@pytest.mark.usefixtures("no_scores")
def test_a_choice_within_index_topk(ask_small, tmp_path):
    rows = [{"prompt": "w1 w2", "choices": ["w5", "w9"], "gold": 0}]
    kind = {"output_type": "multiple_choice", "doc_to_choice": "choices", "doc_to_target": "gold"}
    file = describe(tmp_path, rows, metric_list=[{"metric": "acc"}], **kind)
    assert f"engines score only tokens past index_topk = {TOPK}" in ask_small("--task", file)


@pytest.mark.usefixtures("no_scores")
def test_options_that_do_not_go_together(ask_small, tmp_path):
    task = ("--task", describe(tmp_path, [{"prompt": LONG[0], "answer": "w3"}]))
    assert "--gsm8k is not used by --task" in ask_small(*task, "--gsm8k", tmp_path, exit_code=2)
    assert "--context belongs to" in ask_small(*task, "--context", 30, exit_code=2)
    assert "leave out --task" in ask_small(*task, "--offload", exit_code=2)
