"""`pattern.yaml`, schema 1: a pattern, the model it is for, and where it comes from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ixsearch.patterns.counting import counted
from ixsearch.patterns.errors import PatternError
from ixsearch.patterns.fields import Fields
from ixsearch.patterns.findings import Collector, Place
from ixsearch.patterns.pattern import Pattern
from ixsearch.patterns.spelling import misspellings
from ixsearch.patterns.text_file import read_text
from ixsearch.patterns.yaml_reader import MAX_BYTES, Node, compose, read_as

SCHEMA = 1

_HEAD = """\
# An IndexCache pattern: one letter a layer, layer 0 first; MTP layers are not in it.
# F (Full) runs its indexer; S (Shared) reuses the top-k indices of the closest earlier F.
# Check it against a checkpoint:  ixsearch validate pattern.yaml --model MODEL
"""


@dataclass(frozen=True)
class ModelIdentity:
    """Which model a pattern is for. An empty string: not known."""

    architecture: str
    num_hidden_layers: int
    model_type: str = ""
    config_hash: str = ""

    def config(self) -> dict[str, Any]:
        """As much of a config.json as this says."""
        return {
            "architectures": [self.architecture],
            "model_type": self.model_type or _MODEL_TYPES.get(self.architecture, ""),
            "num_hidden_layers": self.num_hidden_layers,
        }


_MODEL_TYPES = {"DeepseekV32ForCausalLM": "deepseek_v32", "GlmMoeDsaForCausalLM": "glm_moe_dsa"}


@dataclass(frozen=True)
class DocumentsUsed:
    """Documents that a pattern was searched or scored on."""

    role: str
    """calibration, held-out or test."""
    source: str
    count: int
    tokens: int
    digest: str


@dataclass(frozen=True)
class Provenance:
    """Where a pattern comes from."""

    tool_version: str
    date: str
    """ISO."""
    seed: int | None = None
    study: str = ""
    """Name of the Optuna study."""
    documents: tuple[DocumentsUsed, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    """Figures by name; the name says the unit where it is not plain."""
    constraints: str = ""
    """To which the search kept, in words; empty: none."""


@dataclass(frozen=True)
class PatternFile:
    """What a `pattern.yaml` says. Raises `PatternError` unless the pattern fits the model."""

    pattern: Pattern
    model: ModelIdentity
    provenance: Provenance | None = None
    place: Place | None = field(default=None, compare=False, repr=False)
    """Where the pattern stands, when it was read from a file."""
    first_letter: Place | None = field(default=None, compare=False, repr=False)
    """Where its letters begin, if they stand there as they are."""

    def __post_init__(self) -> None:
        if message := _length_problem(self.pattern.letters, self.model.num_hidden_layers):
            raise PatternError(message)


def read_pattern_file(path: str | os.PathLike[str]) -> PatternFile:
    """Read and check a `pattern.yaml`.

    Raises `PatternError`, whose `findings` are all problems with their places.
    """
    return parse_pattern_file(read_text(path, MAX_BYTES), str(path))


def parse_pattern_file(text: str, source: str = "pattern.yaml") -> PatternFile:
    """As `read_pattern_file`, from the text of a file named `source`."""
    found = Collector()
    root = compose(text, source, found)
    value = _take_file(Fields(root, "", found), text) if root else None
    if found.findings or value is None:
        raise PatternError.of(found.sorted())
    return value


def dump_pattern_file(value: PatternFile) -> str:
    """The text of a `pattern.yaml`; reading it back gives an equal value."""
    head = {"schema": SCHEMA, "pattern": value.pattern.letters}
    parts: list[dict[str, Any]] = [head, {"model": _without_empty(asdict(value.model))}]
    if value.provenance:
        provenance = {**vars(value.provenance)}
        provenance["documents"] = [asdict(d) for d in value.provenance.documents]
        provenance["scores"] = {k: _plain_number(v) for k, v in value.provenance.scores.items()}
        parts.append({"provenance": _without_empty(provenance)})
    return "\n".join([_HEAD.rstrip("\n"), *map(_dump, parts)])


def _take_file(fields: Fields, text: str) -> PatternFile | None:
    schema = fields.whole("schema", required=True)
    if schema is not None and schema != SCHEMA:
        place = fields.entries["schema"].node.place
        mend = "upgrade ixsearch" if schema > SCHEMA else f"write {SCHEMA}"
        message = f"schema {schema} is not known here, only {SCHEMA}"
        fields.add("IX014", place, message, mend)
        return None
    node = fields.text_node("pattern", required=True)
    model = _take_model(fields.mapping("model", required=True))
    provenance = _take_provenance(fields.mapping("provenance"))
    fields.close()
    if node is None or not _letters_hold(fields, node, model, text) or model is None:
        return None
    pattern = Pattern(str(node.value))
    return PatternFile(pattern, model, provenance, node.place, node.first_letter(text))


def _letters_hold(fields: Fields, node: Node, model: ModelIdentity | None, text: str) -> bool:
    """Whether the letters make a pattern for the model; if not, the findings say why."""
    letters = str(node.value)
    wrong = misspellings(letters)
    for m in wrong:
        fields.add(m.code, node.letter_place(m.layer, text), m.message, m.mend)
    length = _length_problem(letters, model.num_hidden_layers) if letters and model else ""
    if length:
        mend = "write one letter a layer, without MTP layers"
        fields.add("IX201", node.letter_place(0, text), length, mend)
    return not wrong and not length


def _length_problem(letters: str, num_layers: int) -> str:
    if not num_layers or len(letters) == num_layers:
        return ""
    given, wanted = counted(len(letters), "letter"), counted(num_layers, "layer")
    return f"the pattern has {given}, the model {wanted}"


def _take_model(fields: Fields | None) -> ModelIdentity | None:
    if fields is None:
        return None
    model = ModelIdentity(
        architecture=fields.text("architecture", required=True),
        num_hidden_layers=fields.whole("num_hidden_layers", required=True, least=1) or 0,
        model_type=fields.text("model_type"),
        config_hash=fields.text("config_hash"),
    )
    fields.close()
    return model


def _take_provenance(fields: Fields | None) -> Provenance | None:
    if fields is None:
        return None
    provenance = Provenance(
        tool_version=fields.text("tool_version", required=True),
        date=fields.text("date", required=True),
        seed=fields.whole("seed"),
        study=fields.text("study"),
        documents=tuple(_take_documents(part) for part in fields.mappings("documents")),
        scores=fields.numbers("scores"),
        constraints=fields.text("constraints"),
    )
    fields.close()
    return provenance


def _take_documents(fields: Fields) -> DocumentsUsed:
    documents = DocumentsUsed(
        role=fields.text("role", required=True),
        source=fields.text("source", required=True),
        count=fields.whole("count", required=True, least=0) or 0,
        tokens=fields.whole("tokens", required=True, least=0) or 0,
        digest=fields.text("digest", required=True),
    )
    fields.close()
    return documents


def _dump(value: dict[str, Any]) -> str:
    """YAML with every string value in quotes: no reader takes it for a number, date or boolean."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    Dumper.add_representer(
        _Quoted, lambda d, s: d.represent_scalar("tag:yaml.org,2002:str", s, style='"')
    )
    quoted = _quote_strings(value)
    return yaml.dump(quoted, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))


class _Quoted(str):
    """A string that is written in double quotes."""


def _quote_strings(value: Any) -> Any:
    if isinstance(value, str):
        return _Quoted(value.encode(errors="backslashreplace").decode())
    if isinstance(value, dict):
        return {
            _Quoted(key) if read_as(key) else key: _quote_strings(part)
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_quote_strings(part) for part in value]
    return value


def _plain_number(value: Any) -> float | int:
    return int(value) if isinstance(value, int) else float(value)


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value not in ("", None, [], {})}
