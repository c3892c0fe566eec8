"""Output folders that are complete or absent: built beside their place, then swapped in by rename.

Of a folder `out`, its parent holds for a moment `.out.ixsearch-new` (being built) and
`.out.ixsearch-old` (being replaced). What a crash leaves of them, the next run puts right.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ixsearch.output.folder_check import MARKER, check_place, is_ours, listed_files
from ixsearch.patterns import IxsearchError
from ixsearch.patterns.sync import sync_folder, sync_tree


def check_output_folder(folder: str | os.PathLike[str]) -> Path:
    """Put right what a crash left, and refuse a folder that could not be written at the end.

    Call it before the work begins. Gives the folder as an absolute path. Raises `IxsearchError`
    where the folder holds files that are not ours, is no folder, or cannot be replaced.
    """
    place = _absolute(folder)
    with _explained(place):
        parent = next(p for p in (*place.parents, place) if p.exists())
        with _locked(parent):
            if parent == place.parent:
                _recover(place)
            check_place(place)
    return place


@contextmanager
def output_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives an empty folder to fill; when the block ends well, that takes the place of `folder`.

    When the block raises, `folder` is as it was. Files in an older folder that this tool did not
    write are carried over, unless the new one has a file of that name.
    """
    place = _absolute(folder)
    with _explained(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        with _locked(place.parent):
            _recover(place)
            check_place(place)
            new = _new(place)
            new.mkdir()
            try:
                yield new
                _mark(new)
                sync_tree(new)
                _swap(new, place)
            finally:
                shutil.rmtree(new, ignore_errors=True)


def _swap(new: Path, place: Path) -> None:
    old = _old(place)
    try:
        if place.exists():
            os.rename(place, old)
        os.rename(new, place)
    except BaseException:
        if old.exists() and not place.exists():
            os.rename(old, place)
        raise
    with suppress(OSError):  # the new folder is in place; the next run tidies up
        sync_folder(place.parent)
        _discard(old, place)


def _recover(place: Path) -> None:
    """Finish or undo the swap that a crash interrupted; drop a folder that was never finished."""
    old, new = _old(place), _new(place)
    if is_ours(place):
        _discard(old, place)
    elif old.exists() and not (place.exists() and any(place.iterdir())):
        os.rename(old, place)
    if new.exists():
        shutil.rmtree(new)


def _discard(old: Path, place: Path) -> None:
    """Remove a replaced folder, once what is not ours has moved on to the new one."""
    if not old.exists():
        return
    if is_ours(old):  # else its removal had begun: what is not ours has moved
        _carry_over(old, place)
    shutil.rmtree(old)


def _carry_over(old: Path, place: Path) -> None:
    ours = set(listed_files(old))
    for root, folders, names in os.walk(old):
        links = [name for name in folders if os.path.islink(os.path.join(root, name))]
        for path in (Path(root, name) for name in names + links):
            inside = path.relative_to(old)
            target = place / inside
            if inside.as_posix() not in ours and not os.path.lexists(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                os.rename(path, target)


def _mark(folder: Path) -> None:
    """List the folder's files in its marker, so that a later run knows which are ours."""
    files = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    text = json.dumps({"written_by": "ixsearch", "files": [MARKER, *files]}, indent=1)
    (folder / MARKER).write_text(text + "\n", encoding="utf-8")


@contextmanager
def _locked(parent: Path) -> Iterator[None]:
    """Keep other runs out of this folder's parent; the system lets go when the process ends."""
    descriptor = os.open(parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _explained(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise IxsearchError(
            f"cannot write the output folder {place}: {error.strerror or error}"
            f" ({error.filename or place}). What was there before is unchanged;"
            " mend this, or give another folder with --out, and repeat the command"
        ) from error


def _absolute(folder: str | os.PathLike[str]) -> Path:
    """Absolute, symbolic links of the parents resolved, the last name left as it is."""
    path = Path(os.path.abspath(folder))
    return path.parent.resolve() / path.name if path.name else path


def _new(place: Path) -> Path:
    return place.parent / f".{place.name}.ixsearch-new"


def _old(place: Path) -> Path:
    return place.parent / f".{place.name}.ixsearch-old"
