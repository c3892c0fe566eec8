"""Text to tokens and back, by the `tokenizers` library."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ixsearch.patterns import IxsearchError
from ixsearch.patterns.findings import clip
from ixsearch.runtime.chat import ChatTemplate
from ixsearch.runtime.settings_file import read_settings

SLOW_FILES = ("tokenizer.model", "tiktoken.model", "vocab.json", "vocab.txt", "spiece.model")
"""What transformers can build a tokenizer from where there is no `tokenizer.json`."""


class TokenizerError(IxsearchError):
    """A model folder without a usable tokenizer, or a text that it cannot write."""


class Tokenizer:
    """The tokenizer of a model folder.

    Special tokens are added as the post-processor of `tokenizer.json` says, and `<bos>` also
    where `tokenizer_config.json` asks for it. Build one with `load`.
    """

    def __init__(
        self, backend: Any, name: str = "", settings: dict[str, Any] | None = None
    ) -> None:
        self.name = name
        self._backend = backend
        self._settings = settings or {}

    @classmethod
    def load(cls, folder: str | Path) -> Tokenizer:
        """Read the tokenizer of a model folder; runs no code from it.

        Raises:
            TokenizerError: the files are missing or cannot be read.
        """
        folder = Path(folder)
        file = folder / "tokenizer.json"
        if not folder.is_dir():
            raise TokenizerError(f"{folder}: no such folder")
        settings = read_settings(folder / "tokenizer_config.json", TokenizerError)
        eos = [
            read_settings(folder / name, TokenizerError).get("eos_token_id")
            for name in ("generation_config.json", "config.json")
        ]
        settings["eos_token_id"] = next((ids for ids in eos if ids is not None), None)
        backend = _from_json(file) if file.is_file() else _from_transformers(folder)
        return cls(backend, str(folder), settings)

    def encode(self, text: str, special: bool = True) -> list[int]:
        """Token ids; `special=False` leaves out what marks the beginning of a text.

        Raises:
            TokenizerError: a word is not in the vocabulary and there is no token for that.
        """
        try:
            ids = self._backend.encode(text, add_special_tokens=special).ids
        except Exception as error:  # the library raises nothing narrower
            raise TokenizerError(self._explain(text, error)) from error
        bos = self._bos_to_add if special else None
        return [bos, *ids] if bos is not None and ids[:1] != [bos] else ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some tokens, special tokens left out."""
        return self._backend.decode(list(ids), skip_special_tokens=True)

    def id_of(self, token: str) -> int | None:
        return self._backend.token_to_id(token)

    @cached_property
    def chat(self) -> ChatTemplate:
        """The model's chat template. Raises `ChatError` where it has none."""
        return ChatTemplate.load(self.name)

    @property
    def vocab_size(self) -> int:
        """Tokens, the added ones included."""
        return self._backend.get_vocab_size(with_added_tokens=True)

    @cached_property
    def eos_token_ids(self) -> frozenset[int]:
        """Tokens that end a text: those of `generation_config.json`, else `config.json`, else the
        `eos_token` of `tokenizer_config.json`.

        Raises `TokenizerError`: something else stands there.
        """
        ids = self._settings.get("eos_token_id")
        if ids is None:
            ids = self._token_setting("eos_token")
        ids = ids if isinstance(ids, list) else [] if ids is None else [ids]
        if not all(type(i) is int and i >= 0 for i in ids):
            raise TokenizerError(
                f"{self.name}: eos_token_id is {clip(ids)}: a token's number, or a list of them, is"
                " needed"
            )
        return frozenset(ids)

    @cached_property
    def token_texts(self) -> list[str]:
        """The text of every token by itself."""
        return self._backend.decode_batch(
            [[i] for i in range(self.vocab_size)], skip_special_tokens=True
        )

    @cached_property
    def _bos_to_add(self) -> int | None:
        return self._token_setting("bos_token") if self._settings.get("add_bos_token") else None

    def _token_setting(self, key: str) -> int | None:
        token = self._settings.get(key)
        token = token.get("content") if isinstance(token, dict) else token
        if token is not None and not isinstance(token, str):
            raise TokenizerError(f"{self.name}: {key} is {clip(token)}: a token's text is needed")
        return self.id_of(token) if token else None

    def _explain(self, text: str, error: Exception) -> str:
        split = self._backend.pre_tokenizer
        words = [word for word, _ in split.pre_tokenize_str(text)] if split else []
        unknown = next((word for word in words if self.id_of(word) is None), None)
        if unknown is None:
            return f"{self.name}: the tokenizer cannot encode the text: {error}"
        return (
            f"{self.name}: {unknown!r} is not in the vocabulary of {self.vocab_size} tokens:"
            " use only words that the model knows"
        )


def _from_json(file: Path) -> Any:
    from tokenizers import Tokenizer as Backend

    try:
        return Backend.from_file(str(file))
    except Exception as error:  # the library raises nothing narrower
        raise TokenizerError(
            f"{file}: cannot be read as a tokenizer ({error}): copy the file again"
        ) from error


def _from_transformers(folder: Path) -> Any:
    if not any((folder / name).is_file() for name in SLOW_FILES):
        raise TokenizerError(
            f"{folder}: no tokenizer.json: copy the tokenizer files of the model into the folder"
        )
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise TokenizerError(
            f"{folder}: no tokenizer.json, and the other tokenizer files need transformers:"
            " pip install 'ixsearch[hf]'"
        ) from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
        return tokenizer.backend_tokenizer
    except Exception as error:  # whatever transformers raises, of many kinds
        raise TokenizerError(
            f"{folder}: transformers cannot make a fast tokenizer of the files ({error}):"
            " save one as tokenizer.json"
        ) from error
