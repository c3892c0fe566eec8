"""IX1..: the letters of a pattern, whatever the model."""

from __future__ import annotations

import json

from ixsearch.patterns.rules.rule import Example, Rule

GOOD = Example("FFSSFSSS")
KEY = "index_topk_pattern"

RULES = (
    Rule(
        "IX101",
        "empty-pattern",
        "error",
        "The pattern is empty",
        "Engines take an empty pattern for all F, so it shares nothing.",
        bad=Example("''"),
        good=GOOD,
    ),
    Rule(
        "IX102",
        "illegal-letter",
        "error",
        "A letter is neither F nor S",
        "vLLM, SGLang and TensorRT-LLM take any letter but S for F, silently; transformers stops"
        " with a KeyError.",
        bad=Example("FFSXFSSS"),
        good=GOOD,
    ),
    Rule(
        "IX103",
        "lower-case",
        "error",
        "A letter is in lower case",
        "vLLM and SGLang compare with an upper-case S: a lower-case s is F there, silently, and the"
        " pattern is slower than you think. transformers stops, TensorRT-LLM takes it for S.",
        bad=Example("FFssFSSS"),
        good=GOOD,
    ),
    Rule(
        "IX104",
        "look-alike-letter",
        "error",
        "A letter only looks like F or S",
        "It is another character to every engine, and most take it for F, silently.",
        bad=Example("FFЅSFSSS"),
        good=GOOD,
        more="Such as Cyrillic dze (U+0405) or full-width letters, which come with text copied from"
        " a page or a chat.",
    ),
    Rule(
        "IX105",
        "invisible-character",
        "error",
        "A space, separator or invisible character stands among the letters",
        "Every engine counts it as a layer, and all letters after it move to the next one.",
        bad=Example("'FFSS FSSS'"),
        good=GOOD,
        more="Blanks, commas, zero-width spaces, soft hyphens, byte order marks. The layer that the"
        " character lands on is F in vLLM, SGLang and TensorRT-LLM.",
    ),
    Rule(
        "IX106",
        "first-layer-shared",
        "error",
        "Layer 0 is S",
        "Engines crash, or read a buffer that nobody has written and answer with noise.",
        bad=Example("SFSSFSSS"),
        good=GOOD,
        more="transformers raises ValueError in the first forward, SGLang fails on the missing"
        " indices, vLLM checks nothing; TensorRT-LLM makes layer 0 F, with a warning.",
    ),
    Rule(
        "IX107",
        "nothing-shared",
        "info",
        "All layers are F",
        "It has the plain model's quality, and its speed.",
        bad=Example("FFFFFFFF"),
        good=GOOD,
    ),
    Rule(
        "IX108",
        "too-many-letters",
        "error",
        "There are more letters than any model has layers",
        "This is no pattern; nothing more of it was looked at.",
        bad=Example("overrides.json", (("overrides.json", json.dumps({KEY: "F" * 10_001})),)),
        good=Example("overrides.json", (("overrides.json", json.dumps({KEY: "FFSSFSSS"})),)),
        more="The limit is 10,000 layers.",
    ),
)
