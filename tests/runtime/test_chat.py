"""Chat templates, beside transformers' own rendering of the same files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models

from ixsearch.runtime.chat import ChatError, ChatTemplate
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.document_files import read_documents

SIMPLE = """\
{{ bos_token }}{% for message in messages %}
    {% if message['role'] == 'system' and not loop.first %}
        {{ raise_exception('the system speaks first') }}
    {% endif %}
<|{{ message.role }}|>
{{ message['content'] | trim }}{{ eos_token }}
{% endfor %}
{% if tools %}{{ tools | tojson }}{% endif %}
{% if add_generation_prompt %}<|assistant|>
{% endif %}"""
TALK = [
    {"role": "system", "content": "Be brief. "},
    {"role": "user", "content": "Zwölf <mal> drei?"},
    {"role": "assistant", "content": "36"},
]
TOKENS = {"bos_token": "<s>", "eos_token": {"content": "</s>", "__type": "AddedToken"}}


def folder(tmp_path: Path, template: object = SIMPLE, file: str = "") -> Path:
    settings = TOKENS | ({} if template is None or file else {"chat_template": template})
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    if file:
        (tmp_path / "chat_template.jinja").write_text(file)
    characters = sorted(set("<>|&;" + json.dumps(TALK, ensure_ascii=False)))
    words = {"\n": 0, " ": 1} | {c: i + 2 for i, c in enumerate(characters)}
    backend = Backend(models.BPE(words, [], unk_token=None))
    backend.add_special_tokens(["<s>", "</s>"])
    backend.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


@pytest.mark.parametrize("file", ["", SIMPLE])
@pytest.mark.parametrize("prompt", [False, True])
@pytest.mark.parametrize("variables", [{}, {"tools": [{"name": "f", "arguments": ["<ä>"]}]}])
def test_renders_as_transformers_does(
    tmp_path: Path, file: str, prompt: bool, variables: dict
) -> None:
    transformers = pytest.importorskip("transformers")
    where = folder(tmp_path, file=file)
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(str(where))
    wanted = theirs.apply_chat_template(
        TALK, tokenize=False, add_generation_prompt=prompt, **variables
    )
    assert ChatTemplate.load(where).render(TALK, prompt, **variables) == wanted


def test_of_several_templates_the_default_is_taken(tmp_path: Path) -> None:
    several = [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "yes"}]
    assert ChatTemplate.load(folder(tmp_path, several)).render(TALK) == "yes"


def test_an_answer_is_what_the_model_would_write(tmp_path: Path) -> None:
    prompt, answer = ChatTemplate.load(folder(tmp_path)).split_answer(TALK)
    assert prompt.endswith("<|assistant|>\n") and answer == "36</s>\n"
    assert prompt + answer == ChatTemplate.load(tmp_path).render(TALK)


@pytest.mark.parametrize(
    ("template", "messages", "said"),
    [
        (None, TALK, "has no chat template"),
        ("{% for %}", TALK, "no usable template"),
        (SIMPLE, TALK[:2], "must end with a message of the assistant"),
        (SIMPLE, [], "must end with"),
        (SIMPLE, [TALK[1], TALK[0], TALK[2]], "the system speaks first"),
        ("{{ messages | length }}", TALK, "writes a given answer otherwise"),
        ("{{ ''.__class__.__mro__ }}", TALK, "refuses"),
        ("{{ cycler.__init__.__globals__.os.system('true') }}", TALK, "refuses"),
    ],
)
def test_what_cannot_be_done_is_said(
    tmp_path: Path, template: object, messages: list, said: str
) -> None:
    with pytest.raises(ChatError, match=said):
        ChatTemplate.load(folder(tmp_path, template)).split_answer(messages)


def test_documents_of_messages(tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(folder(tmp_path))
    (tmp_path / "d.jsonl").write_text(json.dumps({"messages": TALK}) + "\n")
    (document,) = read_documents(tmp_path / "d.jsonl", tokenizer)
    prompt, answer = tokenizer.chat.split_answer(TALK)
    assert document.tokens == tuple(
        tokenizer.encode(prompt, special=False) + tokenizer.encode(answer, special=False)
    )
    ((start, stop),) = document.answers
    assert tokenizer.decode(document.tokens[start:stop]).replace(" ", "").strip() == "36"
    for row, said in (
        ({"messages": TALK, "text": "a"}, "alone"),
        ({"messages": "hello"}, "a list"),
        ({"messages": [["user", "a"]]}, "'role' and 'content'"),
        ({"messages": TALK[:1]}, "d.jsonl:1: a conversation must end"),
    ):
        (tmp_path / "d.jsonl").write_text(json.dumps(row) + "\n")
        with pytest.raises(Exception, match=said):
            read_documents(tmp_path / "d.jsonl", tokenizer)


@pytest.mark.parametrize(
    ("file", "data", "words"),
    [
        ("chat_template.jinja", b"\xff\xfe{{ messages }}", "not UTF-8 text"),
        ("chat_template.jinja", b"{{ " + b"(" * 5000, "no usable template"),
        ("tokenizer_config.json", b'{"chat_template": ["a", "b"]}', "has no chat template"),
        ("tokenizer_config.json", b'{"chat_template": {"default": "x"}}', "has no chat template"),
        ("tokenizer_config.json", b"[" * 100_000, "nested too deeply"),
        ("tokenizer_config.json", b'{"a": "\xff"}', "not UTF-8 text"),
    ],
)
def test_files_that_nobody_can_use(tmp_path: Path, file: str, data: bytes, words: str) -> None:
    (tmp_path / file).write_bytes(data)
    with pytest.raises(ChatError) as caught:
        ChatTemplate.load(tmp_path)
    assert words in str(caught.value) and str(tmp_path) in str(caught.value)
