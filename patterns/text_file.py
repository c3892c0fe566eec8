"""Reading a text file that anybody may have written."""

from __future__ import annotations

import codecs
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

from ixsearch.patterns.errors import PatternError
from ixsearch.patterns.findings import Finding, Place

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def read_text(path: str | os.PathLike[str], limit: int, mark: bool = True) -> str:
    """The text of a UTF-8 file of at most `limit` bytes, without a byte order mark.

    `mark`: such a mark is allowed.

    Raises `PatternError` with the place of the first byte that is no text.
    """
    source = str(path)
    data = _read_bytes(Path(path), limit)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise _error("IX002", Place(source, 1, 1), "the file is UTF-16", "save it as UTF-8")
    if not mark and data.startswith(codecs.BOM_UTF8):
        message = "the file begins with a byte order mark, which JSON readers refuse"
        raise _error("IX002", Place(source, 1, 1), message, "save it as UTF-8 without one")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        message = f"byte 0x{data[error.start]:02x} is not UTF-8"
        mend = "this is not a text file, or not saved as UTF-8"
        raise _error("IX002", place_at(before, len(before), source), message, mend) from None
    if control := _CONTROL.search(text):
        place = place_at(text, control.start(), source)
        message = f"control character U+{ord(control[0]):04X}"
        raise _error("IX002", place, message, "remove it; this may not be a text file")
    return text


def place_at(text: str, index: int, source: str) -> Place:
    """The place of character `index` of `text`."""
    before = text[:index]
    return Place(source, before.count("\n") + 1, len(before) - before.rfind("\n"))


def _read_bytes(path: Path, limit: int) -> bytes:
    place = Place(str(path))
    try:
        with open_regular(path) as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        raise _error("IX001", place, "no such file", "check the path") from None
    except IsADirectoryError:
        raise _error("IX001", place, "this is a folder", "give the file in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        mend = "check the path, and that you may read it"
        raise _error("IX001", place, f"cannot be read: {reason}", mend) from None
    if len(data) > limit:
        message = f"the file is larger than {limit:,} bytes"
        raise _error("IX003", place, message, "is this the file you mean?")
    return data


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading bytes. Raises `OSError`, and `PatternError` for pipes and devices."""
    file = open(path, "rb", opener=_open_without_waiting)  # noqa: SIM115 (the caller closes it)
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise _error("IX001", Place(str(path)), "not a regular file", "give a file")


def _open_without_waiting(path: str, flags: int) -> int:
    """A named pipe without a writer would block an ordinary open for ever."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _error(code: str, place: Place, message: str, mend: str = "") -> PatternError:
    return PatternError.of((Finding(code, message, mend, place),))
