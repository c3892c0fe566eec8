"""The words of the bundled model's language, in the order of their token ids."""

from __future__ import annotations

PAD, BOS, NEWLINE = "<pad>", "<bos>", "\n"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NAMES = _words(
    "Anna Tom Mia Ben Zoe Max Eva Leo Ida Sam Lily Hugo Nora Finn Ruth Carl"
    " Ella Otto Jane Paul Rosa Mark Vera Luke Dora Nick Tina Erik Olga Dave Gina Ivan"
)
ADJECTIVES = _words(
    "red blue green black white tiny huge old new soft hard round flat shiny warm striped"
)
NOUNS = _words(
    "kite drum ball book lamp cup hat scarf boat train doll flute puzzle robot pen bag clock chair"
    " shirt ring mug vase rug belt bell coin card globe horn jar kettle ladder mask net oar pan"
    " quilt rope sled tent"
)
GRAMMAR = _words(
    "Q A : . , ? * + - = #### costs wants knows has buys and of what the friend How much does pay"
    " money is left missing coupon takes off What want Who do Show"
)

VOCABULARY = (PAD, BOS, NEWLINE, *GRAMMAR, *"0123456789", *NAMES, *ADJECTIVES, *NOUNS)
