"""Files that nobody wrote with care: always a finding, never a traceback, never long."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from ixsearch.patterns import PatternError, read_pattern_file

GOOD = b"schema: 1\npattern: FFSS\nmodel: {architecture: X, num_hidden_layers: 4}\n"

LEVELS = zip("abcdefg", "bcdefgh", strict=True)
BOMB = (
    "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in LEVELS)
).encode()


def message(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    start = time.process_time()
    with pytest.raises(PatternError) as caught:
        read_pattern_file(path)
    assert time.process_time() - start < 2
    assert caught.value.findings
    assert len(str(caught.value)) < 20_000
    return str(caught.value).replace(f"{path}", "p")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "p:1:1: the file is empty"),
        (b"# nothing\n", "p:1:1: the file is empty"),
        (b"schema: 1\npat\x00tern: FF\n", "p:2:4: control character U+0000"),
        (b"\x7fELF\x02\x01", "p:1:1: control character U+007F"),
        (b"schema: 1\nx: \xe9\xff\n", "p:2:4: byte 0xe9 is not UTF-8"),
        (b"\xef\xbb\xbfschema: \xff", "p:1:9: byte 0xff is not UTF-8"),
        (GOOD.decode().encode("utf-16"), "p:1:1: the file is UTF-16: save it as UTF-8"),
        (b"schema: 1\n\tpattern: FF\n", "p:2:1: not valid YAML"),
        (b"schema: 1\n\tpattern: FF\n", "indent with spaces"),
        (b"schema: 1\npattern: F: S\n", "p:2:11: not valid YAML: mapping values are not allowed"),
        (b'schema: 1\npattern: "FF\n', "p:3:1: not valid YAML"),
        (GOOD + b"schema: 1\n", "p:4:1: duplicate key 'schema', first on line 1"),
        (GOOD + b"---\nschema: 1\n", "p:4:1: a second YAML document begins"),
        (GOOD + b"? [a]\n: b\n", "p:4:3: a list as a key"),
        (GOOD + b"<<: {a: 1}\n", "p:4:1: the key << without quotes is a merge key"),
        (b"schema: !!python/object/apply:os.system [x]\n", "p:1:9: tag 'tag:yaml.org,2002:python"),
        (b"schema: 1\npattern: !!binary RkY=\n", "p:2:10: tag 'tag:yaml.org,2002:binary'"),
        (b"schema: 1\npattern: &p FFSS\n", "p:2:10: anchor '&p'"),
        (b"schema: &s 1\nx: *s\n", "p:2:4: alias '*s'"),
        (BOMB, "p:2:8: alias '*a'"),
        (b"a: " + b"[" * 100_000, "nest"),
        (b"a: " + b"{a: " * 100_000, "nested deeper than 20"),
        (b"- " * 100_000, "nested deeper than 20"),
        (b"%YAML 9.9\n---\na: 1\n", "p:1:1: not valid YAML"),
        (b"pattern: " + b"F" * (1 << 20), "p: the file is larger than 1,048,576 bytes"),
        (b"".join(b"k%d: 1\n" % i for i in range(80_000)), "p:5000:8: more than 10,000 values"),
        (b"k: 1\n" * 150_000, "p:2:1: duplicate key 'k', first on line 1"),
        (b"schema: 1\n" + b"x" * 900_000 + b": 1\n", "p:2:900001: not valid YAML"),
        (b"schema: 1\npattern: " + bytes(range(33, 127)) * 5000, "p:2:"),
        (b"schema: 1\npattern: 'F" + b"s" * 900_000 + b"'\n", "and 899996 more are 's'"),
        (b"schema: " + b"9" * 900_000, "p:1:9: schema is '999"),
    ],
)
def test_a_hostile_file_gives_a_finding(tmp_path: Path, data: bytes, said: str) -> None:
    assert said in message(tmp_path / "p.yaml", data)


def test_the_report_of_a_file_full_of_mistakes_ends(tmp_path: Path) -> None:
    text = message(tmp_path / "p.yaml", b"".join(b"k%d: 1\n" % i for i in range(1000)))
    assert text.count("\n") < 50


def test_what_is_no_file(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "absent", "no such file"), (tmp_path, "this is a folder")):
        with pytest.raises(PatternError, match=said):
            read_pattern_file(path)
    with pytest.raises(PatternError, match="cannot be read"):
        read_pattern_file("a\0b")
    with pytest.raises(PatternError, match="cannot be read"):
        read_pattern_file("x" * 5000)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
def test_a_pipe_and_a_device_do_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(PatternError, match="not a regular file"):
            read_pattern_file(path)


def test_random_damage_never_escapes_as_another_error(tmp_path: Path) -> None:
    rng = random.Random(0)
    pieces = [b"\t", b"\x00", b": ", b"- ", b"[", b"}", b"&a ", b"*a", b"!!x ", b"'", b'"', b"|\n"]
    path = tmp_path / "p.yaml"
    refused = 0
    for _ in range(600):
        data = bytearray(GOOD)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data))
            piece = rng.choice([*pieces, bytes([rng.randrange(256)])])
            data[at : at + rng.randrange(3)] = piece
        path.write_bytes(data)
        try:
            read_pattern_file(path)
        except PatternError as error:
            refused += 1
            assert error.findings and all(f.place for f in error.findings)
    assert refused > 400
