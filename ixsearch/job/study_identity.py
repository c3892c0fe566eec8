"""What the study of a job is for."""

from __future__ import annotations

from ixsearch.job.inputs import Inputs
from ixsearch.job.sources import Sources
from ixsearch.search.identity import Identity, digest_of, identity_of


def study_identity(sources: Sources, inputs: Inputs) -> Identity:
    """All that decides a score: equal for `optimize` and for all of its workers."""
    eps = sources.latent_norm_eps
    switches = {} if eps is None else {"latent_norm_eps": eps}
    return identity_of(inputs.model, digest_of(inputs.calibration), sources.seed, **switches)
