"""`--documents`: where a set of documents comes from, and what it counts. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from os.path import exists
from pathlib import Path

from ixsearch.patterns import UsageError

LEAST_SHARE = 1e-6
"""Of all weights: a set that counts less is a slip."""
BUNDLED = "bundled"
GSM8K_LONG = "gsm8k-long"
"""Both written in place of a file."""


@dataclass(frozen=True)
class DocumentSource:
    """A jsonl file, `bundled` or `gsm8k-long`, and its weight beside the others."""

    name: str
    weight: float = 1.0

    @property
    def path(self) -> Path | None:
        """Of the file, if it is one."""
        return None if self.name in (BUNDLED, GSM8K_LONG) else Path(self.name)

    @classmethod
    def parse(cls, text: str) -> DocumentSource:
        """`NAME`, or `NAME=WEIGHT`; what is the name of a file, with its =, is that.

        Raises:
            UsageError: there is no name, or the weight is not a number above 0.
        """
        name, sign, said = text.rpartition("=")
        if not (name if sign else text):
            raise UsageError(f"--documents {text!r} names no file: write it as FILE or FILE=2")
        if not sign or exists(text):
            return cls(text)
        try:
            weight = float(said)
        except ValueError:
            if name in (BUNDLED, GSM8K_LONG) or exists(name):
                raise _bad_weight(name, said) from None
            return cls(text)
        if not 0 < weight < inf:
            raise _bad_weight(name, said)
        return cls(name, weight)


def parse_sources(texts: Sequence[str]) -> list[DocumentSource]:
    """All that are given, in their order.

    Raises:
        UsageError: a weight that cannot be, or is nothing beside the others; one source twice.
    """
    sources = [DocumentSource.parse(text) for text in texts]
    names = [source.name for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"--documents {name} is given {names.count(name)} times: give it once, with a"
                f" weight, as {name}=2"
            )
    _check_shares(sources)
    return sources


def _check_shares(sources: Sequence[DocumentSource]) -> None:
    total = sum(source.weight for source in sources)
    for source in sources:
        if not source.weight / total >= LEAST_SHARE:  # nor where the sum is too large for a float
            raise UsageError(
                f"--documents {source.name}={source.weight:g} counts less than {LEAST_SHARE:g} of"
                f" all, whose weights add up to {total:g}: leave it out, or write weights nearer to"
                " each other"
            )


def _bad_weight(name: str, said: str) -> UsageError:
    return UsageError(
        f"--documents {name}={said}: {said!r} is no weight: write a number above 0, as {name}=0.5"
    )
