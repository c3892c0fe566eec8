"""What a study was made for, and the refusal to mix it with anything else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ixsearch.mix import ONE_SET, Mix
from ixsearch.patterns import IxsearchError
from ixsearch.runtime.interface import Document, ModelInfo
from ixsearch.search.objective import DIVERGENCE, Objective

Identity = Mapping[str, Any]
"""All that decides a score. JSON values."""


def identity_of(model: ModelInfo, documents_digest: str, seed: int, **settings: Any) -> Identity:
    """What a study of this model on these documents is for; `settings` also change scores."""
    cache = {} if model.cache == "float" else {"cache": model.cache}
    return {
        "architecture": model.architecture,
        "num_layers": model.num_layers,
        "index_topk": model.index_topk,
        "config_hash": model.config_hash,
        "weights_hash": model.weights_hash,
        "dtype": model.dtype,
        "documents": documents_digest,
        "seed": seed,
        **cache,
        **settings,
    }


def digest_of(documents: Sequence[Document], mix: Mix = ONE_SET) -> str:
    """One hash for a list of documents, in their order, and for what each set counts."""
    text = "".join(d.digest for d in documents)
    if not mix.is_one:
        text += f"{list(mix.sets)}{list(mix.weights)}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def objective_identity(objective: Objective) -> Identity:
    """What of an objective is not as by default."""
    found: dict[str, Any] = {} if objective.is_divergence else {"objective": objective.name}
    if not objective.mix.is_one:
        found["document_weights"] = list(objective.mix.weights)
    return found


def objective_name(identity: Identity) -> str:
    """The inverse, as far as the name goes."""
    return identity.get("objective", DIVERGENCE.name)


@dataclass(frozen=True)
class Setting:
    """A key of an identity that the user sets by an option."""

    option: str
    default: str
    """What it means that the key is not there."""
    is_value: bool = False
    """Can the default be given with the option? Else that is left out."""

    def as_in(self, stored: Any) -> str:
        """How to set it as the study has it."""
        if stored is None and not self.is_value:
            return f"without {self.option}"
        return f"with {self.option} {self.default if stored is None else stored}"


SETTINGS = {
    "objective": Setting("--objective", DIVERGENCE.name, is_value=True),
    "cache": Setting("--cache", "float", is_value=True),
    "latent_norm_eps": Setting("--latent-norm-eps", "as in config.json"),
}
OTHER_DOCUMENTS = ("documents", "document_weights", "seed")
CHOOSE = "choose another --study-name or --storage"


def check_identity(study: str, stored: Identity, wanted: Identity, mend: str | None = None) -> None:
    """Raises `IxsearchError` that lists what differs, and says how to mend it."""
    wanted = json.loads(json.dumps(wanted))
    keys = sorted(k for k in {*stored, *wanted} if stored.get(k) != wanted.get(k))
    if not keys:
        return
    lines = [f"  {k}: {_shown(stored, k)} in the study, {_shown(wanted, k)} now" for k in keys]
    text = "\n".join([f"{study} was made {_otherwise(keys)}:", *lines, mend or _mend(keys, stored)])
    raise IxsearchError(text)


def _otherwise(keys: Sequence[str]) -> str:
    """For what, in words."""
    settings = [k for k in keys if k in SETTINGS or k == "dtype"]  # that goes by the device
    documents = [k for k in keys if k in OTHER_DOCUMENTS]
    parts = (
        ("for another model", len(keys) > len(settings) + len(documents)),
        ("for other documents", documents),
        ("with other settings", settings),
    )
    return " and ".join(words for words, is_so in parts if is_so)


def _mend(keys: Sequence[str], stored: Identity) -> str:
    """Where settings alone differ, the study can be gone on with."""
    if not all(key in SETTINGS for key in keys):
        return CHOOSE
    same = " and ".join(SETTINGS[key].as_in(stored.get(key)) for key in keys)
    return f"to go on with it repeat the command {same}; or {CHOOSE}"


def _shown(identity: Identity, key: str) -> str:
    if key in identity:
        return str(identity[key])
    return SETTINGS[key].default if key in SETTINGS else "not set"
