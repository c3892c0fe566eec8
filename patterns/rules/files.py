"""IX0..: the file itself, before anybody asks about patterns."""

from __future__ import annotations

from ixsearch.patterns.rules.rule import Example, Rule

GOOD_FILE = """\
schema: 1
pattern: "FFSSFSSS"
model:
  architecture: DeepseekV32ForCausalLM
  num_hidden_layers: 8
"""


def _file(text: str, name: str = "pattern.yaml") -> Example:
    return Example(name, ((name, text),))


GOOD = _file(GOOD_FILE)
VLLM = "hf-overrides:\n  use_index_cache: true\n  index_topk_pattern: FFSS\n"
GOOD_VLLM = _file(VLLM, "vllm.yaml")

RULES = (
    Rule(
        "IX001",
        "unreadable-file",
        "error",
        "The file cannot be read",
        "Nothing was checked.",
        bad=Example("nowhere.yaml"),
        good=GOOD,
        more="The file is missing, is no regular file, or may not be read; or a folder has no"
        " config.json. An argument is taken for the letters of a pattern when most of it is F"
        " and S and it holds no dot and no slash; else for the name of a preset or a path.",
    ),
    Rule(
        "IX002",
        "not-text",
        "error",
        "The file is not UTF-8 text",
        "An engine reads other characters than you see, or none.",
        bad=_file("schema: 1\npat\0tern: FFSS\n"),
        good=GOOD,
        more="A byte that is not UTF-8, a control character, UTF-16, or a byte order mark before"
        " JSON (Python's json refuses that; YAML takes it).",
    ),
    Rule(
        "IX003",
        "too-large",
        "error",
        "The file is too large to be what it should be",
        "It is hardly the file you mean, and reading it could take all of the memory.",
        bad=_file("key: 1\n" * 160_000),
        good=GOOD,
        more="Limits: 1 MiB for YAML, 2 MiB for JSON, 64 MiB for the index of a checkpoint.",
    ),
    Rule(
        "IX004",
        "yaml-syntax",
        "error",
        "The file is not valid YAML",
        "No engine can read it.",
        bad=_file('schema: 1\npattern: "FFSS\n'),
        good=GOOD,
    ),
    Rule(
        "IX005",
        "json-syntax",
        "error",
        "This is not valid JSON",
        "Engines take overrides as JSON and stop at the first mistake.",
        bad=_file("json-model-override-args: \"{'index_topk_pattern': 'FFSS'}\"\n", "sglang.yaml"),
        good=_file('json-model-override-args: \'{"index_topk_pattern": "FFSS"}\'\n', "sglang.yaml"),
        more="JSON wants double quotes, lower-case true, false and null, and no comma after the"
        " last entry. A JSON string within YAML goes into single quotes.",
    ),
    Rule(
        "IX006",
        "duplicate-key",
        "error",
        "A key is there twice",
        "YAML and JSON readers keep the last one and say nothing about the others.",
        bad=_file(GOOD_FILE + "schema: 1\n"),
        good=GOOD,
    ),
    Rule(
        "IX007",
        "yaml-feature",
        "error",
        "The file uses more of YAML than a settings file needs",
        "Anchors, aliases, merge keys, tags and further documents hide what a value is; this check"
        " follows none of them.",
        bad=_file(GOOD_FILE.replace('"FFSS', '&p "FFSS')),
        good=GOOD,
    ),
    Rule(
        "IX008",
        "too-deep",
        "error",
        "The file is nested too deeply, or has too many values",
        "It is hardly the file you mean, and reading it could take all of the memory.",
        bad=_file("key: " + "[" * 40 + "]" * 40 + "\n"),
        good=GOOD,
        more="Limits for YAML: 20 levels, 10,000 values.",
    ),
    Rule(
        "IX009",
        "unknown-format",
        "error",
        "Nothing here says anything about a pattern",
        "With it, an engine would run the pattern of the model's own config.json.",
        bad=_file("hf-override: {index_topk_pattern: FFSS}\n", "vllm.yaml"),
        good=GOOD_VLLM,
        more="Read are: pattern.yaml; a vLLM config (hf-overrides); a SGLang config"
        " (json-model-override-args); a JSON object of overrides; config.json; a checkpoint folder;"
        " the letters themselves, as an argument or in a file.",
    ),
    Rule(
        "IX010",
        "empty-file",
        "error",
        "The file is empty",
        "An engine takes it for no settings at all.",
        bad=_file("# pattern: FFSS\n"),
        good=GOOD,
    ),
    Rule(
        "IX011",
        "wrong-type",
        "error",
        "A value is of the wrong kind",
        "Engines stop on it, or read it as something else: a pattern that is no string and no list"
        " cannot be indexed by layer.",
        bad=_file("hf-overrides:\n  index_topk_pattern: 4\n", "vllm.yaml"),
        good=GOOD_VLLM,
    ),
    Rule(
        "IX012",
        "missing-key",
        "error",
        "A key is missing, or has no value",
        "What it says is needed to check the pattern.",
        bad=_file("schema: 1\npattern: FFSS\n"),
        good=GOOD,
    ),
    Rule(
        "IX013",
        "unknown-key",
        "error",
        "A key is not known",
        "Engines ignore a key that they do not know, or stop on it: a slip of the pen switches"
        " nothing on.",
        bad=_file("hf-overrides:\n  index_topk_patern: FFSS\n  use_index_cache: true\n", "v.yaml"),
        good=GOOD_VLLM,
        more="In pattern.yaml every key that the schema does not have; in overrides and"
        " config.json, where any key may stand, only what is nearly the name of a pattern's key.",
    ),
    Rule(
        "IX014",
        "unknown-schema",
        "error",
        "The schema of the pattern file is not known",
        "A newer schema may mean something else by the same keys, so nothing of it is taken.",
        bad=_file(GOOD_FILE.replace("schema: 1", "schema: 7")),
        good=GOOD,
    ),
    Rule(
        "IX015",
        "yaml-trap",
        "error",
        "YAML does not read this as it looks",
        "PyYAML, which engines use, follows YAML 1.1: there no and off are booleans, 1e-3"
        " is a string, 010 is eight and 1:30 is ninety. YAML 1.2 readers differ.",
        bad=_file("hf-overrides: {use_index_cache: true, index_topk_freq: 1e0}\n", "vllm.yaml"),
        good=_file("hf-overrides: {use_index_cache: true, index_topk_freq: 1}\n", "vllm.yaml"),
        more="Put strings in quotes, and write numbers plainly.",
    ),
)
