"""The chat template of a model folder: how it writes a conversation as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ixsearch.patterns import IxsearchError
from ixsearch.runtime.settings_file import read_settings, read_utf8

Message = dict[str, Any]
"""`role` and `content`, and whatever else a template looks at."""


class ChatError(IxsearchError):
    """A template that is missing, cannot be read, or refuses a conversation."""


class ChatTemplate:
    """A jinja2 template, run in a sandbox: it may compute text, and nothing else.

    Build one with `load`. The environment is that of transformers' `apply_chat_template`.
    """

    def __init__(self, source: str, name: str, tokens: dict[str, str] | None = None) -> None:
        from jinja2 import TemplateError
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        self.name = name
        self._tokens = tokens or {}
        try:
            self._template = environment.from_string(source)
        except (TemplateError, RecursionError) as error:
            raise ChatError(f"{name}: no usable template: {error}") from None

    @classmethod
    def load(cls, folder: str | Path) -> ChatTemplate:
        """`chat_template.jinja`, else `chat_template` of `tokenizer_config.json`.

        Raises:
            ChatError: the folder has none, or it cannot be read.
        """
        folder = Path(folder)
        settings = read_settings(folder / "tokenizer_config.json", ChatError)
        tokens = {key: _content(value) for key, value in settings.items() if _is_token(key, value)}
        file = folder / "chat_template.jinja"
        if file.is_file():
            return cls(read_utf8(file, ChatError), str(file), tokens)
        source = settings.get("chat_template")
        if isinstance(source, list):  # several, by name
            parts = (part for part in source if isinstance(part, dict))
            named = (part.get("template") for part in parts if part.get("name") == "default")
            source = next(named, None)
        if not isinstance(source, str):
            raise ChatError(
                f"{folder} has no chat template: write 'prompt' and 'completion' as text, or add"
                " the model's chat_template.jinja"
            )
        return cls(source, str(folder / "tokenizer_config.json"), tokens)

    def render(
        self, messages: Sequence[Message], add_generation_prompt: bool = False, **variables: Any
    ) -> str:
        """The text of a conversation, special tokens written out.

        Args:
            add_generation_prompt: end with what makes the model answer.
            variables: of the template, such as `enable_thinking`.

        Raises:
            ChatError: the template refuses the conversation.
        """
        known = {**self._tokens, **variables, "add_generation_prompt": add_generation_prompt}
        try:
            return self._template.render(messages=list(messages), **known)
        except Exception as error:  # a template can fail in any way
            raise ChatError(f"{self.name} refuses the conversation: {error}") from None

    def split_answer(self, messages: Sequence[Message]) -> tuple[str, str]:
        """A conversation that ends with the assistant, as prompt and answer.

        Raises:
            ChatError: it does not end so, or its answer changes what was written before it.
        """
        if not messages or messages[-1].get("role") != "assistant":
            raise ChatError("a conversation must end with a message of the assistant")
        prompt = self.render(messages[:-1], add_generation_prompt=True)
        whole = self.render(messages)
        if not whole.startswith(prompt) or whole == prompt:
            raise ChatError(
                f"{self.name} writes a given answer otherwise than one that the model begins:"
                " write 'prompt' and 'completion' as text"
            )
        return prompt, whole[len(prompt) :]


def _to_json(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


def _refuse(message: str) -> None:
    from jinja2 import TemplateError

    raise TemplateError(message)


def _is_token(key: str, value: Any) -> bool:
    return key.endswith("_token") and isinstance(_content(value), str)


def _content(value: Any) -> Any:
    return value.get("content") if isinstance(value, dict) else value
