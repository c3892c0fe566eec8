"""Whether a pattern can run on a model. What an engine would do with it is not asked here."""

from __future__ import annotations

from ixsearch.patterns.findings import Finding, Level, Place
from ixsearch.patterns.model_config import ModelConfig
from ixsearch.patterns.pattern_file import ModelIdentity
from ixsearch.patterns.spelling import misspellings

DSA_ARCHITECTURES = ("DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM")
"""Architectures known to have DeepSeek Sparse Attention with one indexer a layer."""


def check_letters(letters: str, place: Place | None = None) -> list[Finding]:
    """Checks that need no model. No errors: `Pattern(letters)` succeeds."""
    findings = [Finding("error", m.message, m.mend, place) for m in misspellings(letters)]
    if letters and not letters.strip("F"):
        message = "all layers are F: nothing is shared, this is the plain model"
        findings.append(Finding("info", message, place=place))
    return findings


def check_for_model(letters: str, model: ModelConfig, place: Place | None = None) -> list[Finding]:
    """Whether the letters fit the model: length, and F only where there are indexer weights."""
    return [
        *_check_length(letters, model, place),
        *_check_indexers(letters, model, place),
        *check_architecture(model),
    ]


def check_architecture(model: ModelConfig) -> list[Finding]:
    """Whether the model has DSA at all."""
    place = Place(model.source)
    if model.index_topk is None:
        message = "the config has no index_topk: this model has no DSA, so nothing to share"
        return [Finding("error", message, "give a DeepSeek-V3.2 or GLM-5 kind of model", place)]
    if model.architecture in DSA_ARCHITECTURES:
        return []
    message = f"{model.architecture} is not known here to have DSA"
    mend = f"known are {' and '.join(DSA_ARCHITECTURES)}; check that your engine shares indices"
    return [Finding("warning", message, mend, place)]


def check_same_model(
    said: ModelIdentity, model: ModelConfig, place: Place | None = None
) -> list[Finding]:
    """Whether the pattern file was made for this model."""
    mend = "search again on this model, or be sure that it carries over"
    level: Level = "warning"
    if said.architecture != model.architecture:
        message = f"the pattern is for a {said.architecture}, the model is a {model.architecture}"
        return [Finding(level, message, mend, place)]
    if said.config_hash and said.config_hash != model.config_hash:
        message = (
            f"the pattern is for a model with config hash {said.config_hash},"
            f" this one has {model.config_hash}"
        )
        return [Finding(level, message, mend, place)]
    return []


def _check_length(letters: str, model: ModelConfig, place: Place | None) -> list[Finding]:
    if len(letters) == model.num_hidden_layers:
        return []
    message = f"the pattern has {len(letters)} letters, the model {model.num_hidden_layers} layers"
    mend = "write one letter a layer, without MTP layers (engines take a missing letter for F)"
    return [Finding("error", message, mend, place)]


def _check_indexers(letters: str, model: ModelConfig, place: Place | None) -> list[Finding]:
    if model.indexer_layers is None:
        message = "no weights beside the config: not checked which layers have an indexer"
        return [Finding("info", message, "give the checkpoint folder", Place(model.source))]
    owners = set(model.indexer_layers)
    full = [i for i, c in enumerate(letters[: model.num_hidden_layers]) if c == "F"]
    bare = [i for i in full if i not in owners]
    if not owners:
        message = "the checkpoint has no indexer weights on any layer"
        return [Finding("error", message, "give a checkpoint of a DSA model", Place(model.source))]
    if not bare:
        return []
    shown = ", ".join(map(str, bare[:8])) + (f" and {len(bare) - 8} more" if bare[8:] else "")
    message = f"F on layer {shown}: the checkpoint has no indexer weights there"
    return [Finding("error", message, "write S on these layers", place)]
