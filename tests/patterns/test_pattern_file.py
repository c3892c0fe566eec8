from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ixsearch.patterns import (
    DocumentsUsed,
    ModelIdentity,
    Pattern,
    PatternError,
    PatternFile,
    Provenance,
    dump_pattern_file,
    parse_pattern_file,
    read_pattern_file,
)

GOOD = """\
schema: 1
pattern: "FFSS"
model:
  architecture: DeepseekV32ForCausalLM
  num_hidden_layers: 4
provenance:
  tool_version: "0.1.0"
  date: "2026-01-01"
  seed: 3
  documents:
    - {role: test, source: "a.jsonl", count: 8, tokens: 900, digest: "00ff"}
  scores:
    divergence: 0.01
"""

TRICKY = [
    "no",
    "1e3",
    "0x1f",
    "12e4567890123456",
    "2026-01-01",
    "null",
    "~",
    "a: b # c",
    "it's",
    'say "x"',
    "tab\there",
    "two\nlines",
    "é 模型 😀",
    " spaces ",
    "\x07\u2028\ufeff",
    "- x",
    "{}",
]


def findings(text: str) -> list[str]:
    with pytest.raises(PatternError) as caught:
        parse_pattern_file(text, "p.yaml")
    assert all(finding.level == "error" for finding in caught.value.findings)
    assert str(caught.value) == "\n".join(map(str, caught.value.findings))
    return [str(finding) for finding in caught.value.findings]


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_a_good_file() -> None:
    file = parse_pattern_file(GOOD, "p.yaml")
    assert file.pattern == Pattern("FFSS")
    assert file.model == ModelIdentity("DeepseekV32ForCausalLM", 4)
    assert file.provenance is not None
    assert file.provenance.documents == (DocumentsUsed("test", "a.jsonl", 8, 900, "00ff"),)
    assert file.provenance.scores == {"divergence": 0.01}
    assert str(file.place) == "p.yaml:2:10"


def test_only_what_is_needed_is_required() -> None:
    text = "schema: 1\npattern: FS\nmodel: {architecture: X, num_hidden_layers: 2}\n"
    assert parse_pattern_file(text).provenance is None
    assert parse_pattern_file(text + "provenance:\n").provenance is None


def random_file(rng: random.Random) -> PatternFile:
    def text() -> str:
        return rng.choice(TRICKY)

    pattern = Pattern("F" + "".join(rng.choice("FS") for _ in range(rng.randrange(100))))
    documents = tuple(
        DocumentsUsed(text(), text(), rng.randrange(9), rng.randrange(10**9), text())
        for _ in range(rng.randrange(3))
    )
    figures = [0.0, 1e-300, -2.5e-7, 1e22, 3.0, 7, float("inf"), rng.random()]
    scores = {rng.choice(TRICKY): rng.choice(figures) for _ in range(rng.randrange(4))}
    seed = rng.choice([None, 0, -1, 2**63 - 1])
    provenance = Provenance(text(), text(), seed, text(), documents, scores, text())
    model = ModelIdentity(text(), len(pattern), text(), text())
    return PatternFile(pattern, model, rng.choice([None, provenance]))


def test_round_trip_of_random_files() -> None:
    rng = random.Random(0)
    for _ in range(150):
        file = random_file(rng)
        text = dump_pattern_file(file)
        assert parse_pattern_file(text) == file
        assert yaml.safe_load(text)["pattern"] == str(file.pattern)


def test_every_string_is_quoted_and_the_head_tells_how_to_check() -> None:
    file = parse_pattern_file(GOOD)
    text = dump_pattern_file(file)
    assert 'pattern: "FFSS"' in text
    assert 'digest: "00ff"' in text
    head = [line for line in text.splitlines() if line.startswith("#")]
    assert text.startswith("#") and any("ixsearch validate" in line for line in head)
    assert yaml.safe_load(text)["model"]["num_hidden_layers"] == 4


def test_scores_may_be_numpy_numbers_and_text_may_hold_lone_surrogates() -> None:
    numpy = pytest.importorskip("numpy")
    provenance = Provenance("1", "d", scores={"a": numpy.float32(0.5), "b": numpy.int64(3)})
    provenance = replace(provenance, study="odd \udcff name")
    model = ModelIdentity("X", 2)
    back = parse_pattern_file(dump_pattern_file(PatternFile(Pattern("FS"), model, provenance)))
    assert back.provenance is not None
    assert back.provenance.scores == {"a": 0.5, "b": 3}
    assert back.provenance.study == "odd \\udcff name"


def test_a_file_value_cannot_contradict_itself() -> None:
    with pytest.raises(PatternError, match="2 letters, the model 3 layers"):
        PatternFile(Pattern("FS"), ModelIdentity("X", 3))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema: 1", "schema: 2", "p.yaml:1:9: schema 2 is not known here, only 1: upgrade"),
        ("schema: 1", "schema: 0", "p.yaml:1:9: schema 0 is not known here, only 1: write 1"),
        ("schema: 1", "schema: '1'", "p.yaml:1:9: schema is the string '1': write a whole number"),
        ("schema: 1", "schema: 01", "p.yaml:1:9: schema is '01': write a whole number"),
        ("schema: 1", "schema: yes", "p.yaml:1:9: schema is 'yes': write a whole number"),
        ("schema: 1", "schema: [1]", "p.yaml:1:9: schema is a list"),
        ("schema: 1", "schema:", "p.yaml:1:1: schema has no value"),
        ("schema: 1\n", "", "p.yaml:1:1: schema is missing"),
        ('"FFSS"', "FALSE", "p.yaml:2:10: pattern: 'FALSE' without quotes is a boolean in YAML"),
        ('"FFSS"', "0x1F", "p.yaml:2:10: pattern: '0x1F' without quotes is a number"),
        ('"FFSS"', "2026-01-01", "p.yaml:2:10: pattern: '2026-01-01' without quotes is a date"),
        ('"FFSS"', "[F, F, S, S]", "p.yaml:2:10: pattern is a list: write a string"),
        ('"FFSS"', "{F: S}", "p.yaml:2:10: pattern is a mapping: write a string"),
        ('"FFSS"', "~", "p.yaml:2:1: pattern has no value"),
        ('"FFSS"', '""', "p.yaml:2:10: the pattern is empty"),
        ('"FFSS"', '"FFsS"', "p.yaml:2:13: layer 2 is 's': write S, upper case"),
        ('"FFSS"', "FFsS", "p.yaml:2:12: layer 2 is 's'"),
        ('"FFSS"', '"FF\\u0053x"', "p.yaml:2:10: layer 3 is 'x'"),
        ('"FFSS"', '"SFSS"', "p.yaml:2:11: layer 0 is S"),
        ('"FFSS"', '"FFS"', "p.yaml:2:11: the pattern has 3 letters, the model 4 layers"),
        ("  num_hidden_layers: 4\n", "", "p.yaml:4:3: model.num_hidden_layers is missing"),
        ("num_hidden_layers: 4", "num_hidden_layers: 0", "p.yaml:5:22: model.num_hidden_layers"),
        ("num_hidden_layers: 4", "num_hidden_layers: 1_0", "is '1_0': write a whole number"),
        ("num_hidden_layers: 4", "num_hidden_layers: 1:30", "is '1:30': write a whole number"),
        ("architecture:", "architcture:", "p.yaml:4:3: unknown key 'model.architcture': did you"),
        ("provenance:", "provenence:", "p.yaml:6:1: unknown key 'provenence': did you mean 'prov"),
        ("  seed: 3", "  zzz: 3", "p.yaml:9:3: unknown key 'provenance.zzz': known are"),
        ("seed: 3", "seed: 3.5", "p.yaml:9:9: provenance.seed is '3.5': write a whole number"),
        ('date: "2026-01-01"', "date: 2026-01-01", "p.yaml:8:9: provenance.date: '2026-01-01' wi"),
        ("count: 8, ", "", "p.yaml:11:7: provenance.documents[0].count is missing"),
        ('digest: "00ff"', "digest: 12e4", "digest: '12e4' without quotes"),
        ("0.01", "low", "p.yaml:13:17: provenance.scores.divergence is 'low': write a number"),
        ("0.01", "'0.01'", "p.yaml:13:17: provenance.scores.divergence is the string '0.01'"),
        ("divergence: 0.01", "no: 0.01", "p.yaml:13:5: the key no without quotes is a boolean"),
        ("divergence: 0.01", "n: 0.01", "p.yaml:13:5: the key n without quotes is a boolean"),
        ("  seed: 3", "  seed: 3\n  seed: 4", "p.yaml:10:3: duplicate key 'seed', first on line 9"),
    ],
)
def test_one_mistake_is_one_finding_with_its_place(old: str, new: str, said: str) -> None:
    found = findings(changed(old, new))
    assert any(said in line for line in found), found
    # A key misspelt is also a key missing, where it is required.
    assert len(found) <= 2


def test_exact_mistakes_give_nothing_else() -> None:
    assert len(findings(changed('"FFSS"', "FALSE"))) == 1
    assert len(findings(changed("0.01", "low"))) == 1
    assert len(findings(changed("  seed: 3", "  seed: 3\n  seed: 4"))) == 1


def test_all_mistakes_are_told_in_the_order_of_the_file() -> None:
    text = changed('"FFSS"', '"ffSx?"').replace("seed: 3", "sed: 3").replace("0.01", "high")
    text = text.replace("tokens: 900", "tokens: -1") + "extra: 1\n"
    places = [line.split(": ")[0] for line in findings(text)]
    assert places == [
        "p.yaml:2:11",
        "p.yaml:2:11",
        "p.yaml:2:14",
        "p.yaml:2:15",
        "p.yaml:9:3",
        "p.yaml:11:57",
        "p.yaml:13:17",
        "p.yaml:14:1",
    ]


@pytest.mark.parametrize("text", ["FFSS", "- 1\n", "[]", "'x'"])
def test_a_file_that_is_no_mapping(text: str) -> None:
    (only,) = findings(text)
    assert only.startswith("p.yaml:1:1: the file is ")


def test_reading_from_a_path(tmp_path: Path) -> None:
    path = tmp_path / "pattern.yaml"
    path.write_text(GOOD, newline="\r\n")
    assert str(read_pattern_file(path).place) == f"{path}:2:10"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert read_pattern_file(str(path)).pattern == Pattern("FFSS")
