"""Word problems so short that no pattern can change their answers.

They show what a short test is worth: facts, question and solution fit in `index_topk` tokens, so
every layer, F or S, selects all of them.
"""

from __future__ import annotations

from random import Random

from ixsearch.patterns import IxsearchError
from ixsearch.tasks.worlds import (
    Problem,
    WordDocument,
    World,
    count_tokens,
    draw_problem,
    facts_text,
)

PROBLEMS_A_WORLD = 50
WORLDS = 200


def draw_short_document(rng: Random, max_tokens: int) -> WordDocument:
    """One problem, the facts that it needs, and as many others as `max_tokens` hold.

    Raises:
        IxsearchError: no problem is that short.
    """
    for _ in range(WORLDS):
        world = World.draw(rng)
        facts = world.facts()
        for _ in range(PROBLEMS_A_WORLD):
            problem = draw_problem(rng, world)
            # A solution spells the facts that it looks up.
            chosen = [fact for fact in facts if fact.strip() in problem.solution]
            if _tokens(chosen, problem) <= max_tokens:
                return _with_others(rng, facts, chosen, problem, max_tokens)
    raise IxsearchError(
        f"no word problem of this language fits in {max_tokens} tokens: take the long ones,"
        " ixsearch_word_problems"
    )


def _with_others(
    rng: Random, facts: list[str], needed: list[str], problem: Problem, max_tokens: int
) -> WordDocument:
    others = [fact for fact in facts if fact not in needed]
    rng.shuffle(others)
    chosen = list(needed)
    for fact in others:
        if _tokens([*chosen, fact], problem) > max_tokens:
            break
        chosen.append(fact)
    rng.shuffle(chosen)
    return WordDocument(facts_text(chosen), (problem,))


def _tokens(facts: list[str], problem: Problem) -> int:
    """Of the document, `<bos>` and the newline that ends the solution included."""
    return 1 + count_tokens(WordDocument(facts_text(facts), (problem,)).text)
