"""All that a run found out: the one value that the report, the tables and the JSON are made of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ixsearch.output.documents_csv import DocumentRow
from ixsearch.output.front import front
from ixsearch.output.served_model import ServedModel
from ixsearch.patterns import Pattern
from ixsearch.recommendation import Recommendation
from ixsearch.results import DocumentSet, Finalist, IndexOverlap, TrialRow
from ixsearch.runtime.interface import ModelInfo, Workload
from ixsearch.search.contest import Contest


@dataclass(frozen=True)
class Totals:
    """What the search cost, in this call of it."""

    evaluations: int
    forward_equivalents: float
    """Layer-tokens computed / (layers x tokens of one document set)."""
    seconds: Mapping[str, float]
    """By phase, in the order they ran."""
    forward_equivalents_of_study: float
    """Of all calls; of what they finished."""


@dataclass(frozen=True)
class Outcome:
    """One finished run of the main job."""

    model: ModelInfo
    tool_version: str
    date: str
    """ISO date and time."""
    seed: int
    study_name: str
    storage: str
    document_sets: tuple[DocumentSet, ...]
    trials: tuple[TrialRow, ...]
    finalists: tuple[Finalist, ...]
    """The baseline first."""
    recommendation: Recommendation
    totals: Totals
    workload: Workload | None
    """What was timed; None: no speed was measured."""
    tolerance: float
    warnings: tuple[str, ...]
    command: str
    constraints: str = ""
    """To which the search kept, in words; empty: none."""
    outside: frozenset[Pattern] = frozenset()
    """Patterns of the study that these do not allow: from calls with others, or the baseline."""
    nested: tuple[Pattern, ...] | None = None
    """The patterns of a nested front; None: the front is of any patterns."""
    objective: str = "divergence"
    """What the search minimised: that, loss or accuracy."""
    contests: tuple[Contest, ...] = ()
    index_overlap: IndexOverlap | None = None
    """None: the engine cannot compare the indices of layers."""
    documents: tuple[DocumentRow, ...] = ()
    served_model: ServedModel | None = None
    """None: commands call it by its name, and nothing is said of how engines load it."""

    @property
    def baseline(self) -> Finalist:
        return self.finalists[0]

    @property
    def served(self) -> Finalist | None:
        """The recommended finalist, else all-F; None where the constraints do not allow that."""
        wanted = self.recommendation.pattern
        if wanted is None:
            return None if self.baseline.pattern in self.outside else self.baseline
        known = (f for f in self.finalists if f.pattern == wanted and f.origin != "uniform")
        return next(known, self.baseline)

    @property
    def pattern(self) -> Pattern | None:
        """The pattern that the files hold."""
        return self.served.pattern if self.served else None

    @property
    def allowed_trials(self) -> tuple[TrialRow, ...]:
        """Trials of the patterns that keep to the constraints."""
        return tuple(t for t in self.trials if t.pattern not in self.outside)

    def value_of(self, pattern: Pattern) -> float:
        """What the search minimised, of a pattern of the study; above all-F's."""
        return next(t.value for t in self.trials if t.pattern == pattern)

    @property
    def front(self) -> tuple[TrialRow, ...]:
        """The trials on the front, fewest F layers first."""
        if self.nested is None:
            return front(self.allowed_trials)
        chain = [t for t in self.allowed_trials if t.pattern in self.nested]
        return tuple(sorted(chain, key=lambda t: t.pattern.num_full))

    @property
    def storage_shown(self) -> str:
        return without_password(self.storage)

    @property
    def command_shown(self) -> str:
        return without_password(self.command)


def without_password(text: str) -> str:
    """The text with the passwords of its database URLs hidden."""
    text = re.sub(r"(\w://[^\s:/@]*):[^\s/]*@", r"\1:***@", text)
    return re.sub(r"([?&](?:password|passwd|pwd)=)[^&\s]*", r"\1***", text)
