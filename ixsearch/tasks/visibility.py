"""Can a set of documents or a task see a pattern at all?

With a context of at most `index_topk` tokens the indexer selects all of them, so every pattern
gives the same. Only positions past `index_topk` tell patterns apart.
"""

from __future__ import annotations

from ixsearch.patterns import IxsearchError
from ixsearch.results import DocumentSet

BLIND_BELOW = 0.05
"""Share of positions past `index_topk` under which a figure says next to nothing of a pattern."""


def sees_patterns(share: float) -> bool:
    """Is this share of positions past `index_topk` enough to tell patterns apart?"""
    return share >= BLIND_BELOW


def blindness_warning(what: str, share: float, index_topk: int) -> str | None:
    """A loud sentence when `what` can hardly see a pattern, else None."""
    if sees_patterns(share):
        return None
    amount = "no" if share == 0 else f"only {share:.1%} of the"
    return (
        f"WARNING: {what} cannot tell patterns apart: {amount} scored tokens lie past"
        f" index_topk = {index_topk}, and up to there every pattern gives the same."
        " Use longer prompts (more few-shot examples, or a long context before the question):"
        " `ixsearch tasks` lists tasks that can."
    )


def require_scored_tokens(documents: DocumentSet, index_topk: int) -> None:
    """Refuse documents of which no token can be scored.

    Raises:
        IxsearchError: with what to do about it.
    """
    if documents.scored_tokens:
        return
    raise IxsearchError(
        f"{documents.source}: none of the {documents.candidate_tokens} tokens to score lies past"
        f" index_topk = {index_topk}, and up to there every pattern gives the same:"
        f" use documents longer than {index_topk} tokens, their answers behind that point"
    )
