"""What the study of a job is for."""

from __future__ import annotations

from ixsearch.job.inputs import Inputs
from ixsearch.job.sources import Sources
from ixsearch.search.identity import Identity, digest_of, identity_of, objective_identity
from ixsearch.search.objective import Objective


def study_identity(sources: Sources, inputs: Inputs, objective: Objective) -> Identity:
    """All that decides a score: equal for `optimize` and for all of its workers."""
    eps = sources.latent_norm_eps
    switches = {} if eps is None else {"latent_norm_eps": eps}
    documents = digest_of(inputs.calibration, inputs.calibration_mix)
    return identity_of(
        inputs.model, documents, sources.seed, **switches, **objective_identity(objective)
    )
