"""The form of the table: what one engine, over a range of versions, makes of a pattern's keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from packaging.version import Version

from ixsearch.patterns.dialects.version import EngineSpec


@dataclass(frozen=True)
class Raises:
    """The engine ends with this exception, at this stage of its start or run."""

    error: str
    when: str

    def __str__(self) -> str:
        return f"{self.error} {self.when}"


class Odd(StrEnum):
    """What becomes of input that no rule was made for."""

    FULL = "taken for F"
    DROPPED = "dropped"
    ABSENT = "as if not given"
    ONE = "taken for 1"
    COMPUTED = "computed with as it is"
    FOLDED = "taken for the upper-case letter"


Outcome = Odd | Raises


@dataclass(frozen=True)
class Frequency:
    """`index_topk_freq` and `index_skip_topk_offset`.

    A layer is S iff max(layer - offset + shift, 0) % frequency != 0.
    """

    offset: int
    """The offset where none is given."""
    shift: int = 1
    reads_offset: bool = True
    null: Outcome = Odd.ABSENT
    zero: Outcome = Raises("ZeroDivisionError", "at model construction")
    negative: Outcome = Odd.COMPUTED
    text: Outcome = Raises("TypeError", "at model construction")
    offset_null: Outcome = Odd.ABSENT
    offset_text: Outcome = Raises("TypeError", "at model construction")
    offset_below_one: Outcome = Odd.COMPUTED
    whole: bool = False
    """Strings and fractions go through int() first."""


@dataclass(frozen=True)
class Letters:
    """`index_topk_pattern`, a string or a list of letters."""

    short: Outcome = Odd.FULL
    long: Outcome = Odd.DROPPED
    lower: Outcome = Odd.FULL
    other: Outcome = Odd.FULL
    empty: Outcome = Odd.FULL
    """An empty string: as `short`, or as if there were no pattern."""
    words: Outcome = Odd.FULL
    """"full" and "shared" in the place of letters."""
    no_list: Outcome = Raises("TypeError", "at model construction")
    """Neither a string nor a list."""
    lists_are_types: bool = False
    """A list is taken for `indexer_types`, with the rules of those."""


@dataclass(frozen=True)
class Types:
    """`indexer_types`, a list of "full" and "shared"."""

    short: Outcome = Odd.FULL
    other: Outcome = Odd.FULL
    """Any word but "full" and "shared"."""
    no_word: Outcome = Odd.FULL
    """An entry that is no string."""
    null: Outcome = Odd.ABSENT
    """An override of null, once the configuration is made."""


class Mtp(StrEnum):
    """Whether MTP layers run their own indexer."""

    FULL = "always F"
    BY_RULE = "as any layer of that number, by config.json alone"


class Stage(StrEnum):
    """What a pipeline stage that starts on S has for indices."""

    UNFILLED = "a buffer that nobody has written"
    CARRIED = "those of the stage before"
    OWN = "its own: it runs its indexer"
    FAILS = "none: it fails"
    NONE = "none: there are no pipeline stages, or they were not looked at"


class Split(StrEnum):
    """How layers that do not divide evenly are spread over pipeline stages."""

    BEFORE_LAST = "the extra ones to the stages before the last, from the back"
    LATER = "the extra ones to the last stages"
    EARLIER = "the extra ones to the first stages"


@dataclass(frozen=True)
class Dialect:
    """One row of the table. Outcomes not given are those of vLLM, the plainest of the rules."""

    engine: str
    """As in `--engine`."""
    title: str
    versions: str
    """A version specifier, such as ">=0.25,<0.33"; empty: the engine is read by date."""
    label: str
    """The versions for people."""
    read_to: str
    """The newest version of the range whose source was read; for an engine by date, the month."""
    sources: tuple[str, ...]
    """Where the rules of this row were read."""
    reads: tuple[str, ...] = ("index_topk_pattern", "index_topk_freq")
    """Keys in order of precedence; the first that is there decides."""
    switch: tuple[str, ...] = ()
    """One of these must be on, or pattern and frequency are not read."""
    only_types: tuple[str, ...] = ()
    """The only model types with sharing; empty: all."""
    filled_by: Mapping[str, str] = field(default_factory=dict)
    """Model type -> version of transformers whose configuration class fills in `indexer_types`."""
    pops_keys: bool = False
    """Its configuration class drops the keys that it turned into `indexer_types`."""
    restores: tuple[str, ...] = ()
    """Such keys that the engine puts back."""
    may_pop: str = ""
    """Versions of transformers that it also runs with, and that drop those keys."""
    writes: tuple[str, ...] = ("index_topk_pattern",)
    """The keys that an export sets; `indexer_types` only where the model's config has them."""
    frequency: Frequency = field(default_factory=lambda: Frequency(offset=2))
    letters: Letters = field(default_factory=Letters)
    types: Types = field(default_factory=Types)
    mtp: Mtp = Mtp.FULL
    stage: Stage = Stage.UNFILLED
    split: Split = Split.BEFORE_LAST
    spare_indexers: Raises | None = None
    """What happens at load where an S layer has indexer weights; None: they are skipped."""
    first_shared: str = ""
    """What happens when layer 0 is S."""
    first_is_full: bool = False
    """Layer 0 runs its indexer, whatever the pattern says."""
    bare_full: str = ""
    """What happens when an F layer has no indexer weights in the checkpoint."""
    yaml_mapping: Raises | None = None
    """What happens when its config file has the overrides as a mapping; None: that works."""

    def __hash__(self) -> int:
        return hash((self.engine, self.label))

    def shares(self, model_type: str) -> bool:
        """Whether it can share indices at all for models of this type; '' is any type."""
        known = not self.only_types or not model_type or model_type in self.only_types
        return bool(self.reads) and known

    @property
    def needs_full_starts(self) -> bool:
        """Whether a pipeline stage that begins with S goes wrong."""
        return self.stage not in (Stage.CARRIED, Stage.OWN, Stage.NONE)

    @property
    def name(self) -> str:
        return f"{self.title} {self.label}".strip()

    @property
    def spec(self) -> EngineSpec:
        """What `--engine` says for the newest of its versions that was read."""
        return EngineSpec(self.engine, Version(self.read_to) if self.versions else None)
