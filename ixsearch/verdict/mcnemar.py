"""Do two patterns differ in the questions they get right?"""

from __future__ import annotations

from scipy.stats import binomtest


def mcnemar(losses: int, gains: int) -> float:
    """Exact McNemar test, two-sided: the probability of a split as uneven as this by chance.

    Of the questions on which the two patterns disagree, half go either way if the patterns are
    equally good (McNemar 1947). It assumes independent questions, and says nothing of the size of
    a difference: a large value is no evidence that two patterns are equally good.
    """
    discordant = losses + gains
    return float(binomtest(losses, discordant).pvalue) if discordant else 1.0
