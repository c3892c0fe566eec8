"""The value type of the project: one letter a layer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from ixsearch.patterns.errors import PatternError
from ixsearch.patterns.findings import clip
from ixsearch.patterns.spelling import misspellings

_LETTER = {"F": "F", "S": "S", "full": "F", "shared": "S"}


@dataclass(frozen=True, order=True)
class Pattern:
    """One letter a layer: F runs its indexer, S reuses the indices of the closest earlier F.

    Raises `PatternError` unless the letters are F and S and the first is F.
    """

    letters: str

    def __post_init__(self) -> None:
        if not isinstance(self.letters, str):
            raise PatternError(f"a pattern is a string of F and S, not {clip(self.letters)}")
        if not self.letters.startswith("F") or self.letters.strip("FS"):
            first = misspellings(self.letters)[0]
            shown = f" (pattern {clip(self.letters, 100)})" if self.letters else ""
            raise PatternError(f"{first}{shown}")

    @classmethod
    def all_full(cls, num_layers: int) -> Pattern:
        return cls("F" * num_layers)

    @classmethod
    def from_full(cls, num_layers: int, full: Iterable[int]) -> Pattern:
        """The pattern whose F layers are `full`."""
        chosen = set(full)
        for layer in chosen:
            _check_layer(layer, num_layers)
        return cls("".join("F" if i in chosen else "S" for i in range(num_layers)))

    @classmethod
    def parse(cls, value: object) -> Pattern:
        """From `FFS..`, a list of letters, or transformers' list of "full" and "shared".

        Raises `PatternError`.
        """
        if isinstance(value, str):
            return cls(value)
        if not isinstance(value, list | tuple):
            raise PatternError(f"{clip(value)} is no pattern: write a string or a list")
        for layer, word in enumerate(value):
            if not isinstance(word, str) or word not in _LETTER:
                raise PatternError(f"layer {layer} is {clip(word)}: write F or S, full or shared")
        return cls("".join(_LETTER[word] for word in value))

    @classmethod
    def from_frequency(cls, num_layers: int, frequency: int, offset: int = 2) -> Pattern:
        """transformers' rule: F iff max(layer - offset + 1, 0) % frequency == 0."""
        if frequency < 1 or offset < 1:
            raise PatternError(f"frequency {frequency} and offset {offset}: both must be 1 or more")
        full = (i for i in range(num_layers) if max(i - offset + 1, 0) % frequency == 0)
        return cls.from_full(num_layers, full)

    @classmethod
    def uniform(cls, num_layers: int, num_full: int) -> Pattern:
        """`num_full` F layers spread evenly: F at floor(i x layers / num_full)."""
        if not 1 <= num_full <= num_layers:
            raise PatternError(
                f"{num_full} F layers asked of {num_layers}: ask for 1 to {num_layers}"
            )
        return cls.from_full(num_layers, (i * num_layers // num_full for i in range(num_full)))

    def __str__(self) -> str:
        return self.letters

    def __len__(self) -> int:
        return len(self.letters)

    @property
    def num_full(self) -> int:
        return self.letters.count("F")

    @property
    def retention(self) -> float:
        """Share of the layers that are F."""
        return self.num_full / len(self)

    @property
    def full_layers(self) -> tuple[int, ...]:
        return tuple(i for i, letter in enumerate(self.letters) if letter == "F")

    @property
    def shared_layers(self) -> tuple[int, ...]:
        return tuple(i for i, letter in enumerate(self.letters) if letter == "S")

    def frequency(self) -> int | None:
        """The `index_topk_freq` that makes this pattern with some offset; None: no such does.

        Fewer than two steps are no frequency.
        """
        offset = len(self.letters) - len(self.letters.lstrip("F"))
        later = self.full_layers[offset:]
        if len(later) < 2:
            return None
        step = later[0] - offset + 1
        same = Pattern.from_frequency(len(self), step, offset) == self
        return step if same else None

    def reuse_distances(self) -> tuple[int, ...]:
        """For each layer how far before it its source is; 0 for an F layer."""
        return tuple(layer - source for layer, source in enumerate(self.sources()))

    def run_lengths(self) -> tuple[tuple[str, int], ...]:
        """The letter and the length of each run of equal letters."""
        return tuple((letter, len(list(run))) for letter, run in groupby(self.letters))

    def is_nested_in(self, other: Pattern) -> bool:
        """Whether every F of this pattern is an F of `other`. Raises `PatternError`: lengths."""
        if len(self) != len(other):
            raise PatternError(f"patterns of {len(self)} and {len(other)} layers do not compare")
        return set(self.full_layers) <= set(other.full_layers)

    def is_full(self, layer: int) -> bool:
        return self.letters[layer] == "F"

    def sources(self) -> tuple[int, ...]:
        """For each layer the F layer whose indices it uses; an F layer is its own source."""
        out: list[int] = []
        for layer, letter in enumerate(self.letters):
            out.append(layer if letter == "F" else out[-1])
        return tuple(out)

    def index_groups(self) -> tuple[range, ...]:
        """The layers of each index group: an F layer and the S layers that follow it."""
        starts = self.full_layers
        return tuple(range(a, b) for a, b in zip(starts, (*starts[1:], len(self)), strict=True))

    def with_shared(self, layer: int) -> Pattern:
        """This pattern with `layer` made S."""
        return self._with(layer, "S")

    def with_full(self, layer: int) -> Pattern:
        """This pattern with `layer` made F."""
        return self._with(layer, "F")

    def full_only_at(self, layers: Iterable[int]) -> Pattern:
        """This pattern with all but `layers` made S; 0 must be among them."""
        return Pattern.from_full(len(self), set(self.full_layers) & set(layers))

    def _with(self, layer: int, letter: str) -> Pattern:
        _check_layer(layer, len(self))
        return Pattern(self.letters[:layer] + letter + self.letters[layer + 1 :])

    def to_indexer_types(self) -> list[str]:
        """transformers' spelling: "full" or "shared" a layer."""
        return ["full" if letter == "F" else "shared" for letter in self.letters]


def _check_layer(layer: int, num_layers: int) -> None:
    if not 0 <= layer < num_layers:
        raise PatternError(f"there is no layer {layer}: the model has layers 0 to {num_layers - 1}")
