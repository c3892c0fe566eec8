import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ixsearch.output import write as module
from ixsearch.output.front_plot import NO_PLOT
from ixsearch.output.report import report
from ixsearch.output.summary import plain, summary
from ixsearch.output.write import write_outcome
from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.patterns.pattern_file import read_pattern_file

FILES = {
    "pattern.yaml",
    "overrides/vllm.yaml",
    "overrides/sglang.yaml",
    "overrides/hf_overrides.json",
    "trials.csv",
    "documents.csv",
    "report.md",
    "front.png",
}


def visible(folder: Path) -> set[str]:
    files = (p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))
    return {p.relative_to(folder).as_posix() for p in files}


def check_files_say(folder: Path, letters: str) -> None:
    file = read_pattern_file(folder / "pattern.yaml")
    assert file.pattern.letters == letters
    vllm = yaml.safe_load((folder / "overrides/vllm.yaml").read_text())
    sglang = yaml.safe_load((folder / "overrides/sglang.yaml").read_text())
    assert vllm["hf-overrides"]["index_topk_pattern"] == letters
    assert json.loads(sglang["json-model-override-args"])["index_topk_pattern"] == letters
    hf = json.loads((folder / "overrides/hf_overrides.json").read_text())
    assert hf["index_topk_pattern"] == letters


def test_writes_every_file_and_all_say_the_same_pattern(tmp_path, outcome, study):
    outcome = replace(outcome, constraints="pinned S: layers 3")
    folder = write_outcome(tmp_path / "out", outcome, study)
    assert folder == tmp_path / "out" and visible(folder) == FILES
    check_files_say(folder, outcome.recommendation.pattern.letters)
    provenance = read_pattern_file(folder / "pattern.yaml").provenance
    assert provenance.constraints == "pinned S: layers 3"
    assert provenance.seed == 17 and provenance.study == "drop-16-main"
    assert [d.digest for d in provenance.documents] == ["ab12cd34", "ef56ab78"]
    assert provenance.scores["match_rate"] == 381 / 400
    assert "](front.png)" in (folder / "report.md").read_text()


def test_where_nothing_is_recommended_no_file_pretends_otherwise(tmp_path, none_recommended, study):
    assert none_recommended.recommendation.pattern is None
    folder = write_outcome(tmp_path / "out", none_recommended, study)
    check_files_say(folder, "F" * 16)
    text = (folder / "report.md").read_text()
    assert "**Keep all-F" in text and "| **all-F, recommended** | 16 |" in text


def test_a_pattern_that_reads_back_wrong_writes_nothing(tmp_path, outcome, study, monkeypatch):
    true = module.dump_pattern_file
    wrong = "FFFFFFFFFFFFFFFS"
    right = outcome.pattern.letters
    monkeypatch.setattr(module, "dump_pattern_file", lambda v: true(v).replace(right, wrong))
    with pytest.raises(IxsearchError, match="does not read back"):
        write_outcome(tmp_path / "out", outcome, study)
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_report_says_how_to_get_the_picture(
    tmp_path, outcome, study, monkeypatch
):
    monkeypatch.setattr(module, "draw_front", lambda *_: None)
    folder = write_outcome(tmp_path / "out", outcome, study)
    assert visible(folder) == FILES - {"front.png"}
    text = (folder / "report.md").read_text()
    assert NO_PLOT in text and "ixsearch[plot]" in text and "front.png" not in text


def test_the_report_has_every_figure_and_what_it_was_measured_on(outcome):
    text = report(outcome, "front.png")
    wanted = [outcome.recommendation.headline, outcome.recommendation.reason]
    model = outcome.model
    wanted += [model.name, model.architecture, model.config_hash, model.weights_hash]
    wanted += [model.device, model.dtype, "torch 2.11.0", "python 3.12.1", "seed 17", "0.1.0"]
    wanted += ["| index_topk | 48 |", outcome.date, outcome.study_name]
    for s in outcome.document_sets:
        share = f"{100 * s.share_past_topk:.1f}"
        wanted.append(
            f"| {s.role} | {s.source} | {s.documents} | {s.tokens} | {s.scored_tokens}"
            f" | {share} | {s.digest} |"
        )
    for f in outcome.finalists:
        q = f.held_out
        if 0 < q.divergence < 1e-3:
            wanted.append(f"{q.divergence:.2e} ±{q.divergence_stderr:.0e}")
        elif q.divergence:
            wanted.append(f"{q.divergence:.4f} ±{q.divergence_stderr:.4f}")
            wanted.append(f"{f.calibration.divergence:.4f} ±{f.calibration.divergence_stderr:.4f}")
        wanted += [f"{q.loss:.4f}", f"{100 * q.match_rate:.1f} ±{100 * q.match_stderr:.1f}"]
        wanted += [f"`{f.pattern}`", f"| {f.pattern.num_full} |"]
        if f.task:
            wanted.append(f"{100 * f.task.strict:.1f} ±3.5 | {100 * f.task.flexible:.1f} ±3.5")
        if f.speed:
            wanted += [f"{f.speed.prefill_tokens_per_s:.0f}"]
            wanted += [f"{f.speed.time_per_output_token_ms:.3f}"]
            for r in (f.speed.prefill_ratio, f.speed.decode_ratio):
                wanted.append(f"{r.median:.2f}x ({r.low:.2f}-{r.high:.2f})")
    wanted += [
        "57 evaluations",
        "36.25 forward-equivalents",
        "search 88.1 s",
        "held-out 2 min 32 s",
    ]
    wanted += ["4 requests of 512 tokens", "32 decode steps", "7 rounds", "97.0 %"]
    wanted += ["1234 tokens", "400 answers", "8 documents", "56 problems of gsm_worlds"]
    wanted += ["optuna-dashboard", "vllm serve", "sglang.launch_server"]
    assert [w for w in wanted if w not in text] == []


def test_every_table_of_the_report_is_well_formed(outcome):
    odd = replace(outcome, model=replace(outcome.model, name="a|b\nc"), warnings=("x\ny",))
    for block in report(odd, None, NO_PLOT).split("\n\n"):
        if block.startswith("|"):
            cells = [len(re.split(r"(?<!\\)\|", line)) for line in block.splitlines()]
            assert len(set(cells)) == 1, block


def test_warnings_stand_first(outcome):
    loud = replace(outcome, warnings=("gsm8k cannot see a pattern", "second"))
    text = report(loud, "front.png")
    assert text.index("**WARNING: gsm8k cannot") < text.index("**WARNING: second")
    assert text.index("WARNING: second") < text.index("## Recommendation")
    assert "WARNING" not in report(outcome, "front.png")


def test_passwords_appear_nowhere(tmp_path, outcome, study):
    folder = write_outcome(tmp_path / "out", outcome, study)
    for path in folder.rglob("*"):
        assert not path.is_file() or b"secret" not in path.read_bytes()
    assert "secret" not in json.dumps(summary(outcome))
    assert "postgresql://me:***@host/db" in (folder / "report.md").read_text()
    other = replace(outcome, storage="postgresql://host/db?user=me&password=secret")
    assert other.storage_shown == "postgresql://host/db?user=me&password=***"
    assert (
        replace(outcome, storage="sqlite:////a/b:c@d.db").storage_shown == "sqlite:////a/b:c@d.db"
    )


def test_the_summary_is_strict_json(outcome):
    import numpy as np

    broken = replace(outcome.finalists[1].held_out, divergence_stderr=float("nan"), loss=np.inf)
    odd = replace(outcome.finalists[1], held_out=replace(broken, matched=np.int64(3)))
    outcome = replace(outcome, finalists=(outcome.finalists[0], odd, *outcome.finalists[2:]))
    found = json.loads(json.dumps(summary(outcome, Path("/x/out")), allow_nan=False))
    assert found["folder"] == "/x/out"
    assert found["recommendation"]["served"] == outcome.pattern.letters
    assert found["recommendation"]["pattern"] == outcome.pattern.letters
    held_out = found["finalists"][1]["held_out"]
    assert held_out["divergence_stderr"] is None and held_out["loss"] is None
    assert held_out["matched"] == 3 and held_out["match_rate"] == 3 / 400
    assert found["finalists"][0]["speed"]["prefill_ratio"]["median"] == 1
    assert found["totals"]["seconds"]["search"] == 88.1
    assert len(found["front"]) == 5


def test_plain_takes_values_apart():
    import numpy as np

    assert plain({"a": (Pattern("FS"), np.float32(0.5), True, None, float("-inf"))}) == {
        "a": ["FS", 0.5, True, None, None]
    }


def test_a_nested_front_is_what_the_files_show(tmp_path, outcome, study):
    chain = tuple(f.pattern for f in outcome.finalists if f.origin == "uniform")
    folder = write_outcome(tmp_path / "out", replace(outcome, nested=chain), study)
    text = (folder / "report.md").read_text()
    _, _, after = text.partition("## The nested front")
    table = after.partition("##")[0]
    assert all(f"`{pattern}`" in table for pattern in chain)
    assert table.count("| `") == len(chain)
    assert (folder / "trials.csv").read_text().count(",true,") == len(chain)
