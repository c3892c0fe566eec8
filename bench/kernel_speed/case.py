"""One line of the benchmark: an operation, its shape, and who is timed on which inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kernel_speed.peer import Peer
from kernel_speed.timing import Contender


@dataclass(frozen=True)
class Setup:
    """Contenders on inputs that lie on the device."""

    ours: Contender
    others: dict[str, Contender] = field(default_factory=dict)
    peer: Peer | None = None


@dataclass(frozen=True)
class Case:
    operation: str
    rows: str
    context: int | None
    """Tokens that each request has, where the time depends on it."""
    setup: Callable[[], Setup]
    """Makes the inputs."""
