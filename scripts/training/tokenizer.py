"""The bundled model's tokenizer, as `tokenizer.json` of the `tokenizers` library."""

from __future__ import annotations

from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    processors,
)

from ixsearch.tasks.words import BOS, CHUNK, PAD, VOCABULARY


def build_tokenizer() -> Tokenizer:
    """The pieces of `ixsearch.tasks.words`, as few as possible; what has no piece goes in bytes.

    Pieces are literal text, spaces and all, so `decode(encode(text)) == text` for every text but
    one that spells a special token.
    """
    pieces = [(piece, -1.0) for piece in VOCABULARY]
    # No text meets the unknown token: all bytes that UTF-8 has are pieces.
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    tokenizer.add_special_tokens([AddedToken(word, special=True) for word in (PAD, BOS)])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(CHUNK), "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, VOCABULARY.index(BOS))]
    )
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def tokenizer_config(max_length: int) -> dict[str, Any]:
    """`tokenizer_config.json`. Newline is an ordinary token: decoded text keeps it."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "pad_token": PAD,
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_length,
    }
