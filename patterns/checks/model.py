"""Whether a pattern can run on a model. What an engine would do with it is not asked here."""

from __future__ import annotations

from collections.abc import Sequence

from ixsearch.patterns.checks.letters import Where, nowhere
from ixsearch.patterns.counting import counted, named_layers
from ixsearch.patterns.dialects.keys import model_values
from ixsearch.patterns.errors import IxsearchError
from ixsearch.patterns.findings import Finding, Place
from ixsearch.patterns.model_config import ModelConfig
from ixsearch.patterns.pattern import Pattern
from ixsearch.patterns.pattern_file import ModelIdentity

DSA_ARCHITECTURES = ("DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM")
"""Architectures known to have DeepSeek Sparse Attention with one indexer a layer."""


def check_for_model(letters: str, model: ModelConfig, where: Where = nowhere) -> list[Finding]:
    """Whether the letters fit the model: length, and F only where there are indexer weights."""
    return [
        *check_length(letters, model.num_hidden_layers, model.num_mtp_layers, where(0)),
        *_check_indexers(letters, model, where),
        *check_architecture(model),
    ]


def check_architecture(model: ModelConfig) -> list[Finding]:
    """Whether the model has DSA at all."""
    place = Place(model.source)
    if model.index_topk is None:
        message = "the config has no index_topk: this model has no DSA, so nothing to share"
        mend = "give a DeepSeek-V3.2 or GLM-5 kind of model"
        return [Finding("IX205", message, mend, place)]
    if model.architecture in DSA_ARCHITECTURES:
        return []
    message = f"{model.architecture} is not known here to have DSA"
    mend = f"known are {' and '.join(DSA_ARCHITECTURES)}; check that your engine shares indices"
    return [Finding("IX206", message, mend, place)]


def check_same_model(
    said: ModelIdentity, model: ModelConfig, place: Place | None = None
) -> list[Finding]:
    """Whether the pattern file was made for this model."""
    mend = "search again on this model, or be sure that it carries over"
    if said.architecture != model.architecture:
        message = f"the pattern is for a {said.architecture}, the model is a {model.architecture}"
        return [Finding("IX207", message, mend, place)]
    if said.config_hash and model.config_hash and said.config_hash != model.config_hash:
        message = (
            f"the pattern is for a model with config hash {said.config_hash},"
            f" this one has {model.config_hash}"
        )
        return [Finding("IX207", message, mend, place)]
    return []


def check_length(
    letters: str, layers: int, mtp: int = 0, place: Place | None = None
) -> list[Finding]:
    """Whether there is one letter a layer, and none for MTP layers."""
    if len(letters) == layers or not letters:
        return []
    message = (
        f"the pattern has {counted(len(letters), 'letter')}, the model {counted(layers, 'layer')}"
    )
    if mtp and len(letters) == layers + mtp:
        ends = "the last is for its MTP layer" if mtp == 1 else f"{mtp} are for its MTP layers"
        return [Finding("IX202", f"{message}: {ends}", f"write {counted(layers, 'letter')}", place)]
    mend = "write one letter a layer, without MTP layers"
    return [Finding("IX201", message, mend, place)]


def _check_indexers(letters: str, model: ModelConfig, where: Where) -> list[Finding]:
    full = [i for i, c in enumerate(letters[: model.num_hidden_layers]) if c == "F"]
    if model.indexer_layers is None:
        message = "no weights beside the config: not checked which layers have an indexer"
        unseen = Finding("IX211", message, "give the checkpoint folder", Place(model.source))
        return [*(f.softened() for f in _check_trained(full, model, where)), unseen]
    owners = set(model.indexer_layers)
    if not owners:
        message = "the checkpoint has no indexer weights on any layer"
        return [Finding("IX205", message, "give a checkpoint of a DSA model", Place(model.source))]
    bare = [i for i in full if i not in owners]
    trained = _check_trained(bare, model, where)
    shared = _trained_shared(model)
    rest = [i for i in bare if i not in shared]
    if not rest:
        return trained
    message = f"F on {named_layers(rest)}: the checkpoint has no indexer weights there"
    return [*trained, Finding("IX203", message, "write S on these layers", where(rest[0]))]


def _check_trained(layers: Sequence[int], model: ModelConfig, where: Where) -> list[Finding]:
    """F on layers that the model was trained with as S."""
    trained = _trained_shared(model)
    shared = [i for i in layers if i in trained]
    if not shared:
        return []
    message = f"F on {named_layers(shared)}, which the model's own config has as S"
    mend = "write S on these layers: the model was trained so"
    return [Finding("IX204", message, mend, where(shared[0]))]


def _trained_shared(model: ModelConfig) -> frozenset[int]:
    """The S layers of a model that came so: by a frequency or types, never by letters."""
    own = own_pattern(model)
    added = model_values(model.values).get("index_topk_pattern") is not None
    return frozenset() if own is None or added else frozenset(own.shared_layers)


def own_pattern(model: ModelConfig) -> Pattern | None:
    """The pattern of the model's own configuration; None when that has no sound one."""
    try:
        return model.default_pattern
    except IxsearchError:
        return None
