"""What a study was made for, and the refusal to mix it with anything else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
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


def check_identity(
    study: str,
    stored: Identity,
    wanted: Identity,
    mend: str = "choose another --study-name or --storage",
) -> None:
    """Raises `IxsearchError` that lists what differs, and says how to mend it."""
    wanted = json.loads(json.dumps(wanted))
    keys = sorted(k for k in {*stored, *wanted} if stored.get(k) != wanted.get(k))
    if not keys:
        return
    lines = [f"  {k}: {_shown(stored, k)} in the study, {_shown(wanted, k)} now" for k in keys]
    raise IxsearchError(
        f"{study} was made for another model or other documents:\n" + "\n".join(lines) + f"\n{mend}"
    )


def _shown(identity: Identity, key: str) -> str:
    return str(identity[key]) if key in identity else "not set"
