"""Contents of files that hypothesis makes up, and good ones that it damages."""

from __future__ import annotations

import json
import re

import yaml
from hypothesis import strategies as st

from .good_files import GOOD
from .odd_values import WORDS, configs, documents, mappings


@st.composite
def json_texts(draw: st.DrawFn) -> bytes:
    value = draw(st.one_of(documents(False), mappings(documents(False)), configs()))
    indent = draw(st.sampled_from([None, 1]))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=indent)
    return text.encode(errors="surrogatepass")


@st.composite
def yaml_texts(draw: st.DrawFn) -> bytes:
    value = draw(st.one_of(documents(True), mappings(documents(True))))
    text = yaml.dump(
        value,
        allow_unicode=draw(st.booleans()),
        default_flow_style=draw(st.sampled_from([None, True, False])),
        default_style=draw(st.sampled_from([None, None, '"', "'", "|"])),
        line_break=draw(st.sampled_from(["\n", "\r\n", "\r"])),
    )
    return text.encode(errors="surrogatepass")


PIECES = st.one_of(
    st.sampled_from(
        [
            *(b"\t", b"\x00", b": ", b"- ", b"[", b"]", b"{", b"}", b"&a ", b"*a", b"!!x ", b"'"),
            *(b'"', b"|\n", b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf", b"\xff", b"---\n", b"...\n"),
            *(b"# ", b",", b"null", b"yes", b"1e3", b"\xe2\x80\xa8", b"\xc2\x85", b"\\u0041"),
            *(b"\\ud800", b"\\e[31m", b"F", b"S", b"s", b"8", b".", b"text_config", b"<<: ", b"%"),
            *(b"indexer_types: [full]\n", b"index_topk_freq: 4\n", b'"index_topk_freq": null,'),
            *(b"9999-12-31 23:59:59-23:59", b"0001-01-01 00:00:00+23:59", b"1" * 4400, b"1e999"),
        ]
    ),
    st.binary(max_size=3),
)


@st.composite
def mutated(draw: st.DrawFn, good: bytes) -> bytes:
    data = bytearray(good)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        if draw(st.booleans()):
            data[at : at + draw(st.integers(0, 4))] = draw(PIECES)
        elif lines := bytes(data).splitlines(keepends=True):
            first = draw(st.integers(0, len(lines) - 1))
            count = draw(st.integers(0, 2))
            lines[first : first + 1] = [lines[first]] * count
            data = bytearray(b"".join(lines))
    return bytes(data)


@st.composite
def swapped_values(draw: st.DrawFn) -> bytes:
    """A good file, with one value of it put in the place of another kind of value."""
    text = draw(st.sampled_from(list(GOOD.values())))
    places = list(re.finditer(r'(?<=: )("[^"]*"|[\w.]+|\[[^\]]*\])', text))
    if not places:
        return text.encode()
    place = draw(st.sampled_from(places))
    value = draw(documents(False))
    new = json.dumps(value) if draw(st.booleans()) else str(draw(WORDS))
    return (text[: place.start()] + new + text[place.end() :]).encode(errors="surrogatepass")


MUTATED = st.sampled_from(list(GOOD.values())).flatmap(lambda text: mutated(text.encode()))
CONTENTS = st.one_of(
    MUTATED,
    MUTATED,
    swapped_values(),
    swapped_values(),
    json_texts(),
    json_texts(),
    yaml_texts(),
    yaml_texts(),
    st.text(max_size=60).map(str.encode),
    st.text("FSfs \n,", max_size=40).map(str.encode),
    st.binary(max_size=60),
)
FILE_NAMES = st.sampled_from(["x.yaml", "x.yml", "x.json", "x.txt", "x", "config.json"])
