"""English word problems, sentence by sentence."""

from __future__ import annotations

import re

_END = re.compile(r"[.!?][\"'”’)]*\s+(?=[\"'“‘(]?[A-Z0-9$])")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'“‘])(?:Mr|Mrs|Ms|Dr|St|Mt|Jr|Sr|Prof|No|vs|[a-z]\.[a-z]|[A-Z])\.$"
)


def split_sentences(text: str) -> list[str]:
    """The sentences, spaces made single. In doubt (`9 a.m. Then`) two stay one: no text is lost."""
    text = " ".join(text.split())
    sentences, start = [], 0
    for end in _END.finditer(text):
        sentence = text[start : end.end()].rstrip()
        if not _ABBREVIATION.search(sentence):
            sentences.append(sentence)
            start = end.end()
    return [*sentences, text[start:]] if start < len(text) else sentences


def facts_and_question(text: str) -> tuple[list[str], str] | None:
    """What a problem states and what it asks; None: its last sentence is no question."""
    *facts, last = split_sentences(text) or [""]
    return (facts, last) if last.endswith("?") else None
