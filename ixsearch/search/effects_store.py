"""Effects in the study: measured once, whoever asks."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import optuna

from ixsearch.search.effects import Effects

KEY = "pair_effects"
PART = 30_000
"""Characters of one attribute: the smallest text column that Optuna uses holds 64 KB."""


def save_effects(study: optuna.Study, effects: Effects, forwards: float) -> None:
    """Write them, the description last, so that they are whole or absent.

    `forwards`: what it cost to measure them.
    """
    kept = np.ascontiguousarray(effects.effects_NVLL, dtype=np.float32)
    text = base64.b64encode(zlib.compress(kept.tobytes())).decode()
    parts = [text[i : i + PART] for i in range(0, len(text), PART)]
    for number, part in enumerate(parts):
        study.set_user_attr(f"{KEY}_{number:03d}", part)
    about = {
        "shape": list(kept.shape),
        "tokens": list(effects.tokens),
        "parts": len(parts),
        "forwards": forwards,
    }
    study.set_user_attr(KEY, about)


def effects_forwards(study: optuna.Study) -> float:
    """What the saved effects cost; 0 where there are none."""
    return study.user_attrs.get(KEY, {}).get("forwards", 0.0)


def load_effects(study: optuna.Study) -> Effects | None:
    """What was saved, if anything was."""
    attributes = study.user_attrs
    if KEY not in attributes:
        return None
    about = attributes[KEY]
    text = "".join(attributes[f"{KEY}_{number:03d}"] for number in range(about["parts"]))
    values = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.float32)
    return Effects(values.reshape(about["shape"]), tuple(about["tokens"]))
