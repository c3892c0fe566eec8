"""When a request has written enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ixsearch.runtime.serving.request import Finish, LiveRequest

Decode = Callable[[Sequence[int]], str]
"""Tokens to text."""

TOKENS_A_CHARACTER = 4
"""At most: byte tokens of one character."""
SILENT_TOKENS = 16
"""Special tokens that may stand inside of a stop string without writing anything."""


def finish_of(live: LiveRequest, decode: Decode | None) -> Finish | None:
    """Why the request ends with its newest token; None: it goes on."""
    request, new = live.request, live.new
    if new and new[-1] in request.stop_tokens:
        return Finish.STOP
    if new and decode is not None and _wrote(live.wishes.stop_strings, new, decode):
        return Finish.STOP
    return Finish.LENGTH if len(new) >= request.max_new_tokens else None


def _wrote(stop_strings: tuple[str, ...], new: tuple[int, ...], decode: Decode) -> bool:
    """Only the end is decoded: with each new token, all before it was looked at already."""
    if not stop_strings:
        return False
    longest = max(map(len, stop_strings))
    text = decode(new[-(longest * TOKENS_A_CHARACTER + SILENT_TOKENS) :])
    return any(stop in text for stop in stop_strings)
