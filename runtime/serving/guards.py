"""What can go wrong in a step, put into words."""

from __future__ import annotations

import torch

from ixsearch.runtime.cache import PagedCache
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.not_finite import place_of
from ixsearch.runtime.sharing import Sharing
from ixsearch.runtime.step import Step


def first_bad_places(
    model: DsaModel, tokens_T: torch.Tensor, cache: PagedCache, step: Step, sharing: Sharing
) -> dict[int, str]:
    """Run a step again and say, for each request's number in it, where its first NaN arises.

    A step writes the same to the same slots, however often it runs.
    """
    places: dict[int, str] = {}
    for number, x_Td in enumerate(model.states(tokens_T, cache, step, sharing)):
        bad_T = ~x_Td.isfinite().all(-1)
        for request in step.request_T[bad_T].unique().tolist():
            places.setdefault(request, place_of(number))
    return places
