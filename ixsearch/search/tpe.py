"""Optuna's TPE, as a proposer like all others."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState, create_trial

from ixsearch.patterns import Pattern
from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.race import race
from ixsearch.search.space import SearchSpace

TRIALS = 64
"""Suggestions for a budget."""
WIDTH = 4
"""Suggestions of a turn; they race against the best so far."""


class Tpe:
    """For each budget a sampler of its own, the budgets in turns.

    A suggestion has any number of F; layers drawn at random change their letter until it has the
    budget's. What the sampler learns of a pattern is its divergence on the first rung, which all
    have. Suggestions that were measured before count too, so the search ends.
    """

    name = "tpe"

    def __init__(self, trials: int = TRIALS, warm: bool = True, seed: int = 0) -> None:
        """`warm`: begin with all that is measured of the budget, else with random patterns."""
        self.trials = trials
        self.warm = warm
        self.seed = seed

    def asks(self, problem: Problem) -> Iterator[Ask]:
        samplers = [self._sampler(problem, budget) for budget in problem.budgets]
        for done in range(0, self.trials, WIDTH):
            for sampler in samplers:
                yield from sampler.turn(problem, min(WIDTH, self.trials - done))

    def _sampler(self, problem: Problem, budget: int) -> _Sampler:
        sampler = _Sampler(problem.space, budget, f"{self.seed} {budget}")
        if self.warm:
            sampler.learn(problem, [p for p in problem.scores if p.num_full == budget])
        return sampler


class _Sampler:
    """Suggests patterns of one budget."""

    def __init__(self, space: SearchSpace, budget: int, seed: str) -> None:
        self._space = space
        self._budget = budget
        self._random = Random(seed)
        letters = CategoricalDistribution(("F", "S"))
        self._distributions = {f"layer_{i:02d}": letters for i in space.free_layers}
        sampler = optuna.samplers.TPESampler(seed=self._random.randrange(2**32))
        self._study = optuna.create_study(sampler=sampler)
        self._best: Pattern | None = None

    def turn(self, problem: Problem, width: int) -> Iterator[Ask]:
        """Races some suggestions against the best, and learns how they did."""
        trials = [self._study.ask(self._distributions) for _ in range(width)]
        patterns = list(dict.fromkeys(self._repaired(trial.params) for trial in trials))
        yield from race(problem, patterns if self._best is None else [self._best, *patterns])
        for trial in trials:  # what is learnt is of the repaired pattern
            self._study.tell(trial, state=TrialState.FAIL)
        self.learn(problem, patterns)

    def learn(self, problem: Problem, patterns: list[Pattern]) -> None:
        """From patterns of this budget that are legal and scored on the first rung."""
        scores, documents = problem.scores, problem.rungs[0]
        at_hand = set(scores.at(documents))
        known = [p for p in patterns if self._space.contains(p) and p in at_hand]
        for pattern in known:
            params = {f"layer_{i:02d}": pattern.letters[i] for i in self._space.free_layers}
            value = scores.value(pattern, documents)
            self._study.add_trial(
                create_trial(params=params, distributions=self._distributions, value=value)
            )
        runners = known if self._best is None else [self._best, *known]
        self._best = scores.best_of(runners) if runners else None

    def _repaired(self, params: dict[str, str]) -> Pattern:
        """A nearest pattern that has the budget."""
        chosen = {layer for layer in self._space.free_layers if params[f"layer_{layer:02d}"] == "F"}
        rest = sorted(set(self._space.free_layers) - chosen)
        missing = self._budget - len(self._space.always_full) - len(chosen)
        chosen -= set(self._random.sample(sorted(chosen), max(-missing, 0)))
        chosen |= set(self._random.sample(rest, max(missing, 0)))
        return Pattern.from_full(self._space.num_layers, {*self._space.always_full, *chosen})
